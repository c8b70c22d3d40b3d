"""Certificate signing: what each signer of the cluster signs, which requests of kubelets' client certificates are
approved automatically, when they expire. Serving certificates: `decide.node.serving_certificates`.

The rules of upstream's signers `kubernetes.io/…`. `net.certificate_signing` reads a request as `RequestedNames`.
"""

from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from podfit.api.certificates.v1.types import (
    APPROVED,
    DENIED,
    FAILED,
    CertificateSigningRequest,
    CertificateSigningRequestCondition,
    CertificateSigningRequestStatus,
)
from podfit.core.times import parse_time

CLIENT = "kubernetes.io/kube-apiserver-client"
NODE_CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"
NODE_SERVING = "kubernetes.io/kubelet-serving"
SIGNERS = (CLIENT, NODE_CLIENT, NODE_SERVING)

NODE, NODES, MASTERS = "system:node:", "system:nodes", "system:masters"
CLIENT_AUTH, SERVER_AUTH = "client auth", "server auth"
_SIGNATURE, _KEY = "digital signature", "key encipherment"

LONGEST = timedelta(days=365)
SHORTEST, SHORT = timedelta(minutes=10), timedelta(hours=8)
BACKDATED = timedelta(minutes=5)  # so that a client whose clock is behind can use it at once
DECIDED_LIFE, PENDING_LIFE = timedelta(hours=1), timedelta(hours=24)


class RequestedNames(msgspec.Struct, frozen=True):
    """The names that a certificate is to have, and what it is to be used for, where the request says that itself.

    `problem` says what is wrong with the signature, `unread` what the request says besides; empty when nothing is.
    """

    common_name: str = ""
    organizations: tuple[str, ...] = ()
    dns: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    emails: tuple[str, ...] = ()
    uris: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    problem: str = ""
    unread: str = ""


class Recognized(msgspec.Struct, frozen=True):
    """A request that is approved by itself when who asks may create `certificatesigningrequests/SUBRESOURCE`."""

    subresource: str
    message: str


SELF_NODE = Recognized("selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview.")
SERVING_MESSAGE = "Auto approving kubelet serving certificate: its names and addresses are those of the Node."
ANY_NODE = Recognized("nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview.")


def unclear(asked: RequestedNames) -> str:
    """Why no signer of the cluster ever signs this, whoever approves it: it does not name exactly one user by what is
    read of it. Empty when it does."""
    if why := asked.problem or asked.unread:
        return why
    if not asked.common_name:
        return "the subject has no common name"
    for text in (asked.common_name, *asked.organizations):
        if not text or text != text.strip() or not text.isprintable():
            return f"a name of the subject is empty, begins or ends with a blank, or cannot be printed: {text!a}"
    return ""


def objection(signer: str, asked: RequestedNames, usages: tuple[str, ...]) -> str:
    """Why the signer does not sign this; empty when it does."""
    if why := unclear(asked):
        return why
    for use in asked.uses:
        if use not in usages:
            return f"the request itself asks for the usage {use}, which spec.usages does not name"
    if signer == CLIENT:
        return _client(usages)
    if asked.organizations != (NODES,):
        return "subject organization is not system:nodes"
    names = _serving_names(asked) if signer == NODE_SERVING else _client_names(asked)
    purpose = SERVER_AUTH if signer == NODE_SERVING else CLIENT_AUTH
    wanted = _usages(usages, purpose)
    of_node = "" if asked.common_name.startswith(NODE) else "subject common name does not begin with system:node:"
    return names or (wanted or of_node if signer == NODE_SERVING else of_node or wanted)


def _client(usages: tuple[str, ...]) -> str:
    for usage in usages:
        if usage not in (_SIGNATURE, _KEY, CLIENT_AUTH):
            return f"invalid usage for client certificate: {usage}"
    return "" if CLIENT_AUTH in usages else f"missing required usage for client certificate: {CLIENT_AUTH}"


def _usages(usages: tuple[str, ...], purpose: str) -> str:
    """A key that is not RSA has no use for encipherment."""
    if set(usages) in ({_SIGNATURE, purpose}, {_SIGNATURE, _KEY, purpose}):
        return ""
    return f"usages did not match [{' '.join(sorted((_SIGNATURE, _KEY, purpose)))}]"


def _client_names(asked: RequestedNames) -> str:
    kinds = (("DNS", asked.dns), ("Email", asked.emails), ("IP", asked.addresses), ("URI", asked.uris))
    return next((f"{kind} subjectAltNames are not allowed" for kind, names in kinds if names), "")


def _serving_names(asked: RequestedNames) -> str:
    if not asked.dns and not asked.addresses:
        return "DNS or IP subjectAltName is required"
    kinds = (("Email", asked.emails), ("URI", asked.uris))
    return next((f"{kind} subjectAltNames are not allowed" for kind, names in kinds if names), "")


def recognized(request: CertificateSigningRequest, asked: RequestedNames) -> tuple[Recognized, ...]:
    """What the request may be approved as by itself, the narrowest first."""
    spec = request.spec
    if spec.signer_name != NODE_CLIENT or objection(NODE_CLIENT, asked, spec.usages):
        return ()
    return (SELF_NODE, ANY_NODE) if spec.username == asked.common_name else (ANY_NODE,)


def is_undecided(request: CertificateSigningRequest) -> bool:
    return not (request.status.certificate or any(request.has(kind) for kind in (APPROVED, DENIED, FAILED)))


def is_to_be_signed(request: CertificateSigningRequest) -> bool:
    settled = request.status.certificate or request.has(DENIED) or request.has(FAILED)
    return request.spec.signer_name in SIGNERS and request.has(APPROVED) and not settled


def with_condition(
    request: CertificateSigningRequest, kind: str, reason: str, message: str
) -> CertificateSigningRequest:
    new = CertificateSigningRequestCondition(type=kind, status="True", reason=reason, message=message)
    return replace(request, status=replace(request.status, conditions=(*request.status.conditions, new)))


def times(now: datetime, seconds: int | None, authority_ends: datetime) -> tuple[datetime, datetime]:
    """From when until when it is good. What lasts long ends as much earlier as it begins earlier."""
    longest = int(LONGEST.total_seconds())
    wanted = max(SHORTEST, timedelta(seconds=longest if seconds is None else max(0, min(seconds, longest))))
    ends = now + wanted if wanted < SHORT else now + wanted - BACKDATED
    return now - BACKDATED, min(ends, authority_ends)


def out_of_date(
    request: CertificateSigningRequest, now: datetime, certificate_ends: datetime | None
) -> datetime | None:
    """When the request may go, if nothing more happens to it: it was answered, or nobody wanted to answer."""
    status, moments = request.status, []
    for condition in status.conditions:
        since = _moment(condition.last_update_time) or now
        if condition.type in (DENIED, FAILED) or (condition.type == APPROVED and status.certificate):
            moments.append(since + DECIDED_LIFE)
        elif condition.type == APPROVED:
            moments.append(since + PENDING_LIFE)
    if not status.conditions:
        moments.append((_moment(request.metadata.creation_timestamp) or now) + PENDING_LIFE)
    if certificate_ends is not None and request.has(APPROVED):
        moments.append(certificate_ends)
    return min(moments, default=None)


def _moment(text: str | None) -> datetime | None:
    try:
        return parse_time(text) if text else None
    except ValueError:
        return None


# ---------------------------------------------------------------------- what a write makes of it


def asked_by(
    request: CertificateSigningRequest, user: str, uid: str, groups: tuple[str, ...], extra: dict[str, tuple[str, ...]]
) -> CertificateSigningRequest:
    """Who asks is who sends the request, whatever it says."""
    return replace(request, spec=replace(request.spec, username=user, uid=uid, groups=groups, extra=extra))


def unchanged(new: CertificateSigningRequest, old: CertificateSigningRequest) -> CertificateSigningRequest:
    """The request as it was, with new metadata: a write of the object itself changes nothing else."""
    return replace(new, spec=old.spec, status=old.status)


def answered(new: CertificateSigningRequest, old: CertificateSigningRequest) -> CertificateSigningRequest:
    """Through `status` approval and denial stay as they are; one that is added or left out is for validation to say."""
    conditions = new.status.conditions
    for kind in (APPROVED, DENIED):
        kept = [condition for condition in old.status.conditions if condition.type == kind]
        if len(kept) == sum(condition.type == kind for condition in conditions):
            them = iter(kept)
            conditions = tuple(next(them) if condition.type == kind else condition for condition in conditions)
    return replace(new, spec=old.spec, status=replace(new.status, conditions=conditions))


def judged(new: CertificateSigningRequest, old: CertificateSigningRequest) -> CertificateSigningRequest:
    """Through `approval` only conditions change."""
    status = CertificateSigningRequestStatus(conditions=new.status.conditions, certificate=old.status.certificate)
    return replace(new, spec=old.spec, status=status)


def dated(new: CertificateSigningRequest, old: CertificateSigningRequest, now: str) -> CertificateSigningRequest:
    """Conditions with the times that they lack."""
    since = {
        (condition.type, condition.status): condition.last_transition_time
        for condition in reversed(old.status.conditions)
    }
    conditions = tuple(
        replace(
            condition,
            last_update_time=condition.last_update_time or now,
            last_transition_time=condition.last_transition_time or since.get((condition.type, condition.status)) or now,
        )
        for condition in new.status.conditions
    )
    return replace(new, status=replace(new.status, conditions=conditions))
