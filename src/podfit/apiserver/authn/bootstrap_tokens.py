"""Bootstrap tokens, with which a machine that is nobody yet asks to become a node.

A token `abcdef.0123456789abcdef` is the secret `bootstrap-token-abcdef` in kube-system, of the type
`bootstrap.kubernetes.io/token`: its id, its secret, when it ends, and what it is good for.
"""

import hmac
import re
from collections.abc import Sequence
from datetime import datetime

from podfit.api.core.v1.config.types import Secret
from podfit.apiserver.authn.authenticate import TokenCheck
from podfit.apiserver.authn.tokens import ISSUER
from podfit.apiserver.context import Context
from podfit.core.times import parse_time
from podfit.net.wire import Identity

TYPE, NAMESPACE, PREFIX = "bootstrap.kubernetes.io/token", "kube-system", "bootstrap-token-"
GROUP, USER = "system:bootstrappers", "system:bootstrap:"
_TOKEN = re.compile(r"([a-z0-9]{6})\.([a-z0-9]{16})")
_EXTRA_GROUP = re.compile(r"system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]")


class BootstrapTokens:
    def __init__(self, context: Context) -> None:
        self._context = context

    async def check(self, token: str, audiences: Sequence[str] = ()) -> TokenCheck:
        """Such a token is for this server only."""
        parts = _TOKEN.fullmatch(token)
        if parts is None or (audiences and ISSUER not in audiences):
            return TokenCheck()
        secret = await self._context.find(Secret, PREFIX + parts[1], NAMESPACE)
        if secret is None or not _good(secret, parts[1], parts[2], self._context.clock.now()):
            return TokenCheck()
        return TokenCheck(Identity(USER + parts[1], _groups(secret)), (ISSUER,))


def _good(secret: Secret, token_id: str, token_secret: str, now: datetime) -> bool:
    data = secret.data
    ends = data.get("expiration", b"").decode(errors="replace")
    same = hmac.compare_digest(data.get("token-secret", b""), token_secret.encode())
    for_this = data.get("token-id") == token_id.encode() and data.get("usage-bootstrap-authentication") == b"true"
    there = secret.type == TYPE and not secret.metadata.deletion_timestamp
    return there and for_this and same and (not ends or _ahead(ends, now))


def _ahead(moment: str, now: datetime) -> bool:
    """Whether a moment is still to come; one that cannot be read is not."""
    try:
        return parse_time(moment) > now
    except ValueError:
        return False


def _groups(secret: Secret) -> tuple[str, ...]:
    listed = secret.data.get("auth-extra-groups", b"").decode(errors="replace").split(",")
    extra = {part.strip() for part in listed if _EXTRA_GROUP.fullmatch(part.strip())}
    return GROUP, *sorted(extra)
