"""The identity in a client certificate (CN as user, O as groups). The TLS handshake has verified it."""

import hashlib

from cryptography import x509
from cryptography.x509.oid import NameOID, ObjectIdentifier

from podfit.core.bounded_cache import cached_where_short
from podfit.net.wire import Identity

CREDENTIAL = "authentication.kubernetes.io/credential-id"


@cached_where_short(4096, longest=4096)
def certificate_identity(der: bytes) -> Identity | None:
    """Subject CN is the user and each O a group, as Kubernetes reads client certificates; None without a CN.

    Which certificate it was is told as the credential, by its digest.

    The signature is not looked at: the server has verified it. Remembered per certificate, because a client sends
    the same one with every request. Raises ValueError when `der` is not a certificate.
    """
    subject = x509.load_der_x509_certificate(der).subject
    users, groups = _texts(subject, NameOID.COMMON_NAME), _texts(subject, NameOID.ORGANIZATION_NAME)
    if not users or not users[0]:
        return None
    return Identity(users[0], groups, extra={CREDENTIAL: (f"X509SHA256={hashlib.sha256(der).hexdigest()}",)})


def _texts(name: x509.Name, kind: ObjectIdentifier) -> tuple[str, ...]:
    values = (attribute.value for attribute in name.get_attributes_for_oid(kind))
    return tuple(value for value in values if isinstance(value, str))
