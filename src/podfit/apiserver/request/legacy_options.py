"""Options of legacy mode: which parts are on, and for which clients."""

from typing import Annotated

import msgspec

from podfit.core.options import Option, Unit
from podfit.net.wire import Request

STATUS, POD_UPDATES, DRAFT_POLICIES = "resize-status", "pod-updates", "draft-policies"
SWITCHES = (STATUS, POD_UPDATES, DRAFT_POLICIES)
EVERYONE = "*"


def _names(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (part.strip() for part in text.split(","))))


def _switches(text: str) -> frozenset[str]:
    wanted = frozenset(_names(text))
    if unknown := sorted(wanted - set(SWITCHES)):
        raise ValueError(f"unknown legacy switch: {unknown[0]} (known: {', '.join(SWITCHES)})")
    return wanted


def _clients(text: str) -> tuple[str, ...]:
    return _names(text) or (EVERYONE,)


class Legacy(msgspec.Struct, frozen=True):
    """`clients` are the user agents, by the name before the slash, that `resize-status` is for; `*` is everyone."""

    switches: Annotated[
        frozenset[str],
        Option(
            f"For clients of 1.27 to 1.32: {','.join(SWITCHES)}.",
            flag="legacy",
            unit=Unit(name="list", read=_switches, text=",".join),
            usual="none",
        ),
    ] = frozenset()
    clients: Annotated[
        tuple[str, ...],
        Option(
            "User agents that resize-status is for, as NAME,OTHER.",
            flag="legacy-clients",
            unit=Unit(name="list", read=_clients, text=",".join),
            usual="everyone",
        ),
    ] = (EVERYONE,)

    def __contains__(self, switch: str) -> bool:
        return switch in self.switches

    def includes(self, request: Request) -> bool:
        agent = request.headers.get("user-agent", "").partition("/")[0].strip()
        return EVERYONE in self.clients or agent in self.clients


OFF = Legacy()
