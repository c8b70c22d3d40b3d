"""Service account tokens: signed by the server, bound to the account, and to a pod where asked for.

A token is good while its account is the one it was made for (the uid counts, not the name), the pod it is bound to is
there, and its time has not run out.
"""

import uuid
from pathlib import Path
from typing import Any

from podfit.api.core.config import ServiceAccount
from podfit.api.core.pods import Pod
from podfit.apiserver.context import Context
from podfit.net.files import write_atomic
from podfit.net.wire import Identity

ISSUER = "https://kubernetes.default.svc"
ALGORITHM = "ES256"
SHORTEST, DEFAULT, LONGEST = 600, 3600, 2**32


class SigningKey:
    """An EC key in a file of mode 0600, made when it is not there."""

    def __init__(self, path: Path) -> None:
        from joserfc.jwk import ECKey

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

    @property
    def _key(self) -> Any:
        if self._loaded is None:
            self._loaded = SigningKey(self._key_file)
        return self._loaded.key

    def public_keys(self) -> dict[str, Any]:
        """What checks the tokens, as a set of JSON Web Keys."""
        return {"keys": [{**self._key.as_dict(private=False), "use": "sig", "alg": ALGORITHM}]}

    def issue(
        self, account: ServiceAccount, *, seconds: int, audiences: tuple[str, ...], pod: Pod | None
    ) -> tuple[str, float]:
        """A token and the Unix time at which it ends."""
        from joserfc import jwt

        now = int(self._context.clock.now().timestamp())
        meta = account.metadata
        bound: dict[str, Any] = {"namespace": meta.namespace, "serviceaccount": {"name": meta.name, "uid": meta.uid}}
        if pod is not None:
            bound["pod"] = {"name": pod.metadata.name, "uid": pod.metadata.uid}
        claims = {
            "iss": ISSUER, "sub": f"system:serviceaccount:{meta.namespace}:{meta.name}", "iat": now, "nbf": now,
            "exp": now + seconds, "aud": list(audiences) or [ISSUER], "jti": str(uuid.uuid4()), "kubernetes.io": bound,
        }  # fmt: skip
        return jwt.encode({"alg": ALGORITHM}, claims, self._key), now + seconds

    async def identity(self, token: str) -> Identity | None:
        """Whom a token speaks for; None when it is not one of ours, or not any more."""
        claims = self._claims(token)
        if claims is None:
            return None
        bound = claims.get("kubernetes.io", {})
        namespace, named = bound.get("namespace", ""), bound.get("serviceaccount", {})
        account = await self._context.find(ServiceAccount, named.get("name", ""), namespace)
        if account is None or account.metadata.uid != named.get("uid"):
            return None
        extra = {"authentication.kubernetes.io/credential-id": (f"JTI={claims.get('jti')}",)}
        if "pod" in bound:
            pod = await self._context.find(Pod, bound["pod"]["name"], namespace)
            if pod is None or pod.metadata.uid != bound["pod"]["uid"]:
                return None
            extra["authentication.kubernetes.io/pod-name"] = (pod.metadata.name,)
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
        return Identity(
            f"system:serviceaccount:{namespace}:{account.metadata.name}", groups, account.metadata.uid, extra
        )

    def _claims(self, token: str) -> dict[str, Any] | None:
        from joserfc import jwt
        from joserfc.errors import JoseError

        try:
            claims: dict[str, Any] = jwt.decode(token, self._key, algorithms=[ALGORITHM]).claims
        except (JoseError, ValueError):
            return None
        now = self._context.clock.now().timestamp()
        in_time = claims.get("nbf", 0) <= now < claims.get("exp", 0)
        return claims if in_time and ISSUER in claims.get("aud", []) and claims.get("iss") == ISSUER else None
