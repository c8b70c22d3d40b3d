"""Client certificates: the identity that one names (CN as user, O as groups), and the authority that signed it. The TLS
handshake has verified it.
"""

import hashlib

from cryptography import x509
from cryptography.exceptions import InvalidSignature
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


MOST_REMEMBERED = 1024


class Issuers:
    """The authorities of a PEM bundle. That a certificate is good now was for the handshake to say."""

    def __init__(self, bundle: bytes) -> None:
        self._authorities = x509.load_pem_x509_certificates(bundle) if bundle.strip() else []
        self._known: dict[bytes, bool] = {}

    def __bool__(self) -> bool:
        return bool(self._authorities)

    def issued(self, der: bytes) -> bool:
        """Whether one of them signed it itself."""
        if der not in self._known:
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            self._known[der] = any(_is_issued(der, authority) for authority in self._authorities)
        return self._known[der]


def _is_issued(der: bytes, authority: x509.Certificate) -> bool:
    try:
        x509.load_der_x509_certificate(der).verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True
