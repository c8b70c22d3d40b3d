"""Deferred imports of the API server: what is imported when first asked for. Strategies are in
`registry/strategies/table.py`.

A start is mostly imports, and whether a server is ready depends on neither of these. `podfit up` imports them when it
serves (`process/up.py`); an API server that runs alone does so with the first request.
"""

from typing import TYPE_CHECKING

from podfit.apiserver.http.discovery import Infos
from podfit.net.wire import Request, Response

if TYPE_CHECKING:
    from podfit.apiserver.resources import Resources


def resources() -> "type[Resources]":
    """The verbs on resources, with admission and all rules behind them."""
    from podfit.apiserver.resources import Resources

    return Resources


def openapi(path: str, request: Request, infos: Infos) -> Response | None:
    """A document that describes the kinds; None for another path."""
    from podfit.apiserver.http.openapi import openapi as found

    return found(path, request, infos)
