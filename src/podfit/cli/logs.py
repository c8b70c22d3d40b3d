"""Logging of the command line: text for people, JSON for collectors, always on stderr."""

import logging
import sys
from enum import StrEnum
from typing import Annotated

import msgspec

from podfit.cli.render import shown
from podfit.core.options import Option


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return msgspec.json.encode(entry).decode()


class _Text(logging.Formatter):
    """What a cluster has said stands in one line, without codes for terminals (`render.shown`)."""

    def format(self, record: logging.LogRecord) -> str:
        return "\n".join(map(shown, super().format(record).split("\n")))

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  (logging's name)
        record.message = shown(record.message)
        return super().formatMessage(record)


class LogOptions(msgspec.Struct, frozen=True, kw_only=True):
    log_format: Annotated[LogFormat, Option("text or json, on stderr.")] = LogFormat.TEXT
    verbose: Annotated[int, Option("Say more; twice: everything.", also=("v",), count=True)] = 0


def configure(options: LogOptions) -> None:
    """`verbose` 0 shows warnings, 1 what happens, 2 everything of podfit's own."""
    handler = logging.StreamHandler(sys.stderr)
    text = _Text("%(asctime)s %(levelname).1s %(name)s %(message)s", "%H:%M:%S")
    handler.setFormatter(_Json() if options.log_format is LogFormat.JSON else text)
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    level = (logging.WARNING, logging.INFO, logging.DEBUG)[min(options.verbose, 2)]
    logging.getLogger("podfit").setLevel(level)
