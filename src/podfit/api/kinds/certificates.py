"""The kind of certificates.k8s.io."""

from typing import Any

from podfit.api.certificates.v1.types import APPROVED, DENIED, FAILED, GROUP, CertificateSigningRequest
from podfit.api.meta.columns import AGE, NAME, NONE, age
from podfit.api.meta.resource_info import STATUS, Column, ResourceInfo, Subresource
from podfit.core.durations import human_duration

_COLUMNS = (
    NAME,
    AGE,
    Column("SignerName", description="Who is asked to sign."),
    Column("Requestor", description="Who asked."),
    Column("RequestedDuration", description="How long the certificate is to be good for."),
    Column("Condition", description="Whether it is approved or denied, has failed, and is issued."),
)


def _row(asked: CertificateSigningRequest, now: str) -> list[Any]:
    spec = asked.spec
    lasts = NONE if spec.expiration_seconds is None else human_duration(spec.expiration_seconds)
    return [asked.metadata.name, age(asked, now), spec.signer_name, spec.username, lasts, _state(asked)]


def _state(asked: CertificateSigningRequest) -> str:
    words = ["Denied" if asked.has(DENIED) else "Approved" if asked.has(APPROVED) else "Pending"]
    words += ["Failed"] if asked.has(FAILED) else []
    words += ["Issued"] if asked.status.certificate else []
    return ",".join(words)


KINDS: tuple[ResourceInfo, ...] = (
    ResourceInfo(
        type=CertificateSigningRequest,
        group=GROUP,
        resource="certificatesigningrequests",
        singular="certificatesigningrequest",
        short_names=("csr",),
        namespaced=False,
        subresources=(Subresource("approval"), STATUS),
        columns=_COLUMNS,
        row=_row,
        fields={"spec.signerName": lambda o: o.spec.signer_name},
    ),
)
