"""Service account tokens: signed by the server, bound to the account, and to a pod, secret or node where asked for.

A token is good while its account is the one it was made for (the uid counts, not the name), the object it is bound to
is there, and its time has not run out.
"""

import base64
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import msgspec
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey

from podfit.api.core.v1.config.types import Secret, ServiceAccount
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import Document, Object
from podfit.api.meta.v1.types import ObjectMeta
from podfit.apiserver.authn.authenticate import TokenCheck
from podfit.apiserver.authn.verified_tokens import Verified, VerifiedTokens
from podfit.apiserver.context import Context
from podfit.core.times import parse_time
from podfit.net.files import write_atomic
from podfit.net.wire import Identity

ISSUER = "https://kubernetes.default.svc.cluster.local"
ALGORITHM = "ES256"
LONGEST_HEADER = 128  # characters
SHORTEST, DEFAULT, LONGEST = 600, 3600, 2**32
_LEEWAY = timedelta(seconds=60)  # a token outlives its object's announced end by this much
_EXTRA = "authentication.kubernetes.io/"
_KINDS: dict[str, type[Object]] = {"pod": Pod, "secret": Secret, "node": Node}


class _Header(msgspec.Struct, forbid_unknown_fields=True):
    """All that a token of ours says before it is known to be one. The library reads more than that, and what it does
    not expect there ends in errors of any type."""

    alg: Literal["ES256"]
    typ: Literal["JWT"]


def claims_of(token: str, key: Any) -> Document | None:
    """What a token that this key has signed says, None for any other."""
    try:
        head = token[:LONGEST_HEADER].partition(".")[0]
        msgspec.json.decode(base64.urlsafe_b64decode(head + "==="), type=_Header)
        claims: Document = jwt.decode(token, key, algorithms=[ALGORITHM]).claims
    except (JoseError, ValueError):
        return None
    return claims if claims.get("iss") == ISSUER else None


def shared_audiences(claims: Document, wanted: Sequence[str]) -> tuple[str, ...]:
    """Those of the wanted ones that the token is for."""
    meant = frozenset(claims.get("aud", ()))
    return tuple(audience for audience in wanted if audience in meant)


class SigningKey:
    """An EC key in a file of mode 0600, made when it is not there."""

    def __init__(self, path: Path) -> None:
        if path.exists():
            self.key: Any = ECKey.import_key(path.read_bytes())
        else:
            self.key = ECKey.generate_key("P-256", private=True)
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_atomic(path, self.key.as_pem(private=True))


class ServiceAccountTokens:
    def __init__(self, context: Context, key_file: Path) -> None:
        self._context = context
        self._key_file = key_file
        self._loaded: SigningKey | None = None
        self.verified = VerifiedTokens()

    @property
    def _key(self) -> Any:
        if self._loaded is None:
            self._loaded = SigningKey(self._key_file)
        return self._loaded.key

    def public_keys(self) -> Document:
        """What checks the tokens, as a set of JSON Web Keys."""
        return {"keys": [{**self._key.as_dict(private=False), "use": "sig", "alg": ALGORITHM}]}

    def issue(
        self, account: ServiceAccount, *, seconds: int, audiences: Sequence[str], bound: dict[str, ObjectMeta]
    ) -> tuple[str, int]:
        """A token and the Unix time at which it ends. `bound` are the objects that it names, by kind in lower case."""
        now = int(self._context.clock.now().timestamp())
        meta = account.metadata
        named = {"serviceaccount": meta, **bound}
        private: Document = {"namespace": meta.namespace} | {
            kind: {"name": meta.name, "uid": meta.uid} for kind, meta in named.items()
        }
        claims = {
            "iss": ISSUER,
            "sub": f"system:serviceaccount:{meta.namespace}:{meta.name}",
            "iat": now,
            "nbf": now,
            "exp": now + seconds,
            "aud": list(audiences),
            "jti": self._context.random.uuid(),
            "kubernetes.io": private,
        }
        return jwt.encode({"alg": ALGORITHM}, claims, self._key), now + seconds

    async def check(self, token: str, audiences: Sequence[str] = ()) -> TokenCheck:
        """Whom a token speaks for towards one of the audiences, this server where none is given."""
        verified = self.verified.find(token)
        claims = claims_of(token, self._key) if verified is None else verified.claims
        if claims is None:
            return TokenCheck()
        wanted = audiences or (ISSUER,)
        shared = shared_audiences(claims, wanted)
        if not shared:
            texts = (" ".join(f'"{audience}"' for audience in listed) for listed in (claims.get("aud", ()), wanted))
            return TokenCheck(problem="token audiences [{}] is invalid for the target audiences [{}]".format(*texts))
        problem = self._out_of_time(claims) or await self._unbound(claims)
        if problem:
            self.verified.forget(token)
            return TokenCheck(problem=problem)
        if verified is None:
            verified = Verified(claims, _identity(claims))
            self.verified.keep(token, verified, self._context.clock.now().timestamp())
        return TokenCheck(verified.identity, shared)

    def _out_of_time(self, claims: Document) -> str:
        now = self._context.clock.now().timestamp()
        if now >= claims.get("exp", 0):
            return "service account token has expired"
        return "" if claims.get("nbf", 0) <= now else "service account token is not valid yet"

    async def _unbound(self, claims: Document) -> str:
        """What a token was bound to and is there no more; empty when all is."""
        bound = claims.get("kubernetes.io", {})
        namespace, named = bound.get("namespace", ""), bound.get("serviceaccount", {})
        account = await self._context.find(ServiceAccount, named.get("name", ""), namespace)
        if account is None:
            return f'serviceaccounts "{named.get("name", "")}" not found'
        if account.metadata.uid != named.get("uid"):
            return f"service account UID ({account.metadata.uid}) does not match claim ({named.get('uid')})"
        for kind, ref in bound.items():
            if kind not in _KINDS or (kind == "node" and "pod" in bound):
                continue  # the node of a pod is told, not relied on
            obj: Any = await self._context.find(_KINDS[kind], ref["name"], "" if kind == "node" else namespace)
            if obj is None or obj.metadata.uid != ref["uid"] or self._leaving(obj.metadata):
                return "service account token has been invalidated"
        return ""

    def _leaving(self, meta: ObjectMeta) -> bool:
        end = meta.deletion_timestamp
        return end is not None and parse_time(end) + _LEEWAY < self._context.clock.now()


def _identity(claims: Document) -> Identity:
    bound = claims["kubernetes.io"]
    namespace, account = bound["namespace"], bound["serviceaccount"]
    extra = {f"{_EXTRA}credential-id": (f"JTI={claims['jti']}",)}
    for kind in ("node", "pod"):
        if kind in bound:
            extra |= {f"{_EXTRA}{kind}-{what}": (bound[kind][what],) for what in ("name", "uid") if bound[kind][what]}
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
    return Identity(f"system:serviceaccount:{namespace}:{account['name']}", groups, account["uid"], extra)
