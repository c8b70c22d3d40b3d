"""certificates.k8s.io/v1: somebody asks a signer for a certificate, and somebody else says whether it may be issued."""

from typing import Annotated

from msgspec import field

from podfit.api.meta.base import INT32, Object, Struct, Time, always, keyed
from podfit.api.meta.v1.types import ObjectMeta

GROUP = "certificates.k8s.io"
APPROVED, DENIED, FAILED = "Approved", "Denied", "Failed"


class CertificateSigningRequestSpec(Struct):
    """`request` is PKCS#10 in PEM; who asked is filled in by the server."""

    request: bytes = always(default=b"")
    signer_name: str = always(default="")
    expiration_seconds: INT32 | None = None
    usages: tuple[str, ...] = ()
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = field(default_factory=dict)


class CertificateSigningRequestCondition(Struct):
    type: str = always(default="")
    status: str = always(default="")
    reason: str = ""
    message: str = ""
    last_update_time: Time | None = always(default=None)
    last_transition_time: Time | None = always(default=None)


class CertificateSigningRequestStatus(Struct):
    conditions: Annotated[tuple[CertificateSigningRequestCondition, ...], keyed("type", patch=False)] = ()
    certificate: bytes = b""


class CertificateSigningRequest(Object):
    kind: str = always(default="CertificateSigningRequest")
    api_version: str = always(default=f"{GROUP}/v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    spec: CertificateSigningRequestSpec = always(default=CertificateSigningRequestSpec())
    status: CertificateSigningRequestStatus = always(default=CertificateSigningRequestStatus())

    def has(self, kind: str) -> bool:
        """Whether there is a condition of this type."""
        return any(condition.type == kind for condition in self.status.conditions)
