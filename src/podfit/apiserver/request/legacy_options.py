"""Options of legacy mode: which parts are on, and for which clients."""

import msgspec

from podfit.net.wire import Request

STATUS, POD_UPDATES, DRAFT_POLICIES = "resize-status", "pod-updates", "draft-policies"
SWITCHES = (STATUS, POD_UPDATES, DRAFT_POLICIES)
EVERYONE = "*"


class Legacy(msgspec.Struct, frozen=True):
    """`clients` are the user agents, by the name before the slash, that `resize-status` is for; `*` is everyone."""

    switches: frozenset[str] = frozenset()
    clients: tuple[str, ...] = (EVERYONE,)

    @staticmethod
    def parse(switches: str, clients: str = "") -> "Legacy":
        """Read comma-separated names. ValueError names one that there is not."""
        wanted = frozenset(_names(switches))
        if unknown := sorted(wanted - set(SWITCHES)):
            raise ValueError(f"unknown legacy switch: {unknown[0]} (known: {', '.join(SWITCHES)})")
        return Legacy(wanted, _names(clients) or (EVERYONE,))

    def __contains__(self, switch: str) -> bool:
        return switch in self.switches

    def includes(self, request: Request) -> bool:
        agent = request.headers.get("user-agent", "").partition("/")[0].strip()
        return EVERYONE in self.clients or agent in self.clients


def _names(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (part.strip() for part in text.split(","))))


OFF = Legacy()
