"""Certificate signing requests: what may be asked for, and which conditions may come and go where.

What takes reading X.509 is for the API server to look at: `net.certificate_signing`.
"""

from podfit.api.certificates.v1.types import APPROVED, DENIED, FAILED, CertificateSigningRequest
from podfit.api.meta.base import Object
from podfit.api.meta.validation import names
from podfit.api.meta.validation.metadata import validate_meta_update
from podfit.api.meta.validation.rules import Rules
from podfit.core.fields import FieldError, duplicate, forbidden, invalid, required, too_long, unsupported

USAGES = (
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
)
LEGACY = "kubernetes.io/legacy-unknown"
SHORTEST = 600  # seconds
_LONGEST_DOMAIN, _LONGEST_NAME = 253, 253 + 1 + 2 * 253 + 1


def validate_request(
    asked: CertificateSigningRequest, old: CertificateSigningRequest | None = None
) -> list[FieldError]:
    """What was wrong in the old object already is borne."""
    return [*_spec(asked, old), *_conditions(asked, old)]


def _spec(asked: CertificateSigningRequest, old: CertificateSigningRequest | None) -> list[FieldError]:
    if old is not None:  # it cannot have changed
        return []
    spec = asked.spec
    errors = [] if spec.usages else [required("spec.usages")]
    for index, usage in enumerate(spec.usages):
        if usage not in USAGES:
            errors.append(unsupported(f"spec.usages[{index}]", usage, USAGES))
    for index, usage in enumerate(spec.usages):
        if usage in spec.usages[:index]:
            errors.append(duplicate(f"spec.usages[{index}]", usage))
    errors += _signer(spec.signer_name)
    if spec.expiration_seconds is not None and spec.expiration_seconds < SHORTEST:
        text = "may not specify a duration less than 600 seconds (10 minutes)"
        errors.append(invalid("spec.expirationSeconds", spec.expiration_seconds, text))
    return errors


def _signer(name: str) -> list[FieldError]:
    path = "spec.signerName"
    if name == LEGACY:
        return [invalid(path, name, "the legacy signerName is not allowed via this API version")]
    if not name:
        return [required(path)]
    if name.count("/") != 1:
        text = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        return [invalid(path, name, text)]
    domain, _, rest = name.partition("/")
    errors = [too_long(path, _LONGEST_DOMAIN)] if len(domain) > _LONGEST_DOMAIN else []
    errors += _labels(path, domain, each_alone=True)
    if "." not in domain:
        errors.append(invalid(path, domain, "should be a domain with at least two segments separated by dots"))
    errors += _labels(path, rest, each_alone=False)
    if len(name) > _LONGEST_NAME:
        errors.append(too_long(path, _LONGEST_NAME))
    return errors


def _labels(path: str, text: str, *, each_alone: bool) -> list[FieldError]:
    """What is wrong with the first label that is not well-formed."""
    for label in text.split("."):
        problems = names.dns_label(label) if each_alone else names.dns_subdomain(label)
        if problems:
            listed = problems if each_alone else [", ".join(problems)]
            return [invalid(path, text, f'validating label "{label}": {reason}') for reason in listed]
    return []


def _conditions(asked: CertificateSigningRequest, old: CertificateSigningRequest | None) -> list[FieldError]:
    both = old is not None and old.has(APPROVED) and old.has(DENIED)
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, condition in enumerate(asked.status.conditions):
        where = f"status.conditions[{index}]"
        if not condition.type:
            errors.append(required(f"{where}.type"))
        good = ("True",) if condition.type in (APPROVED, DENIED, FAILED) else ("False", "True", "Unknown")
        if not condition.status:
            errors.append(required(f"{where}.status"))
        elif condition.status not in good:
            errors.append(unsupported(f"{where}.status", condition.status, good))
        other = {APPROVED: DENIED, DENIED: APPROVED}.get(condition.type)
        if other in seen and not both:
            text = "Approved and Denied conditions are mutually exclusive"
            errors.append(invalid(f"{where}.type", condition.type, text))
        if condition.type in seen:
            errors.append(duplicate(f"{where}.type", condition.type))
        seen.add(condition.type)
    return errors


def validate_update(new: CertificateSigningRequest, old: CertificateSigningRequest) -> list[FieldError]:
    return validate_request(new, old) + _removed(new, old) + _decided(new, old) + _issued(new, old, may=False)


def validate_status(new: CertificateSigningRequest, old: CertificateSigningRequest) -> list[FieldError]:
    return validate_request(new, old) + _removed(new, old) + _decided(new, old) + _issued(new, old, may=True)


def validate_approval(new: CertificateSigningRequest, old: CertificateSigningRequest) -> list[FieldError]:
    """Through `approval`, where approving and denying is allowed."""
    errors = validate_request(new, old) + _removed(new, old) + _issued(new, old, may=False)
    return errors + validate_meta_update(new.metadata, old.metadata)


def _of_type(asked: CertificateSigningRequest, kind: str) -> list[object]:
    return [condition for condition in asked.status.conditions if condition.type == kind]


def _removed(new: CertificateSigningRequest, old: CertificateSigningRequest) -> list[FieldError]:
    return [
        forbidden("status.conditions", f'updates may not remove a condition of type "{kind}"')
        for kind in (APPROVED, DENIED, FAILED)
        if len(_of_type(new, kind)) < len(_of_type(old, kind))
    ]


def _decided(new: CertificateSigningRequest, old: CertificateSigningRequest) -> list[FieldError]:
    return [
        forbidden("status.conditions", f'updates may not add a condition of type "{kind}"')
        for kind in (APPROVED, DENIED)
        if len(_of_type(new, kind)) > len(_of_type(old, kind))
    ]


def _issued(new: CertificateSigningRequest, old: CertificateSigningRequest, *, may: bool) -> list[FieldError]:
    if new.status.certificate == old.status.certificate:
        return []
    if not may:
        return [forbidden("status.certificate", "updates may not set certificate content")]
    if old.status.certificate:
        return [forbidden("status.certificate", "updates may not modify existing certificate content")]
    return []


RULES: dict[type[Object], Rules] = {
    CertificateSigningRequest: Rules(
        name=lambda _: [], create=validate_request, update=validate_update, status=validate_status, metadata="both"
    )
}
