"""What podfit's server uses of aiohttp: its parser, imported without the rest (`part_of`)."""
# ruff: noqa: E402

from podfit.net.part_of import only_parts

only_parts("aiohttp")

from aiohttp.http_exceptions import HttpProcessingError, LineTooLong
from aiohttp.http_parser import HttpRequestParser, RawRequestMessage
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader

__all__ = [
    "EMPTY_PAYLOAD",
    "HttpProcessingError",
    "HttpRequestParser",
    "LineTooLong",
    "RawRequestMessage",
    "StreamReader",
]
