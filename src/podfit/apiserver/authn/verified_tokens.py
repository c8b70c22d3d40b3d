"""Tokens whose signature was checked, so that it is checked once and not with every request.

Only that is remembered, and whom the claims speak for. Whether a token is still good, that is whether its time runs
and its account and object are there, is asked each time; what is good no longer is forgotten at once. A token is known
by its digest: whoever reads this memory learns no token.
"""

from collections import OrderedDict
from hashlib import sha256

import msgspec

from podfit.api.meta.base import Document
from podfit.net.wire import Identity

MOST = 2048
LONGEST = 2048
"""Letters of a token that is kept; those of pods have about 1,200. Its audiences make it longer."""


class Verified(msgspec.Struct, frozen=True):
    """What a token says that this server has signed, and who bears it."""

    claims: Document
    identity: Identity

    @property
    def ends(self) -> int:
        """In Unix time."""
        seconds: int = self.claims.get("exp", 0)
        return seconds


class VerifiedTokens:
    """At most `MOST` of them: those that were used last."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, Verified] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def find(self, token: str) -> Verified | None:
        digest = _digest(token)
        found = self._known.get(digest)
        if found is not None:
            self._known.move_to_end(digest)
        return found

    def keep(self, token: str, verified: Verified, now: float) -> None:
        """Those whose time has run out by `now` make room first."""
        if len(token) > LONGEST:
            return
        if len(self._known) >= MOST:
            for digest in [digest for digest, known in self._known.items() if known.ends <= now]:
                del self._known[digest]
        while len(self._known) >= MOST:
            self._known.popitem(last=False)
        self._known[_digest(token)] = verified

    def forget(self, token: str) -> None:
        self._known.pop(_digest(token), None)


def _digest(token: str) -> bytes:
    return sha256(token.encode(errors="surrogatepass")).digest()
