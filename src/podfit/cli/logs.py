"""Logging of the command line: text for people, JSON for collectors, always on stderr."""

import logging
import sys
from enum import StrEnum

import msgspec


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


def configure(form: LogFormat, verbosity: int) -> None:
    """`verbosity` 0 shows warnings, 1 what happens, 2 everything of podfit's own."""
    handler = logging.StreamHandler(sys.stderr)
    text = logging.Formatter("%(asctime)s %(levelname).1s %(name)s %(message)s", "%H:%M:%S")
    handler.setFormatter(_Json() if form is LogFormat.JSON else text)
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    level = (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbosity, 2)]
    logging.getLogger("podfit").setLevel(level)
