"""Client certificates: the identity that one names (CN as user, O as groups), and the authority that signed it. The TLS
handshake has verified it.
"""

import hashlib

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.x509.oid import NameOID, ObjectIdentifier

from podfit.core.bounded_cache import cached_where_short
from podfit.net.wire import Identity

CREDENTIAL = "authentication.kubernetes.io/credential-id"
_READ = (NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME)


class Subject(msgspec.Struct, frozen=True):
    """A subject as it authenticates. `others` are the attributes that say nothing of who it is, by dotted OID; `nested`
    where one relative name holds several attributes."""

    user: str = ""
    groups: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    nested: bool = False


def subject_of(name: x509.Name) -> Subject:
    """The one reading of a subject: what is signed is judged by it, and so is what is shown in a handshake.

    The user is empty without a Common Name. Raises ValueError with several of them: other servers take the first or the
    last.
    """
    users, groups = _texts(name, NameOID.COMMON_NAME), _texts(name, NameOID.ORGANIZATION_NAME)
    if len(users) > 1:
        raise ValueError(f"the subject has {len(users)} common names")
    others = (part.oid.dotted_string for part in name if part.oid not in _READ)
    nested = any(len(relative) > 1 for relative in name.rdns)
    return Subject(users[0] if users else "", groups, tuple(others), nested)


@cached_where_short(4096, longest=4096)
def certificate_identity(der: bytes) -> Identity | None:
    """Subject CN is the user and each O a group, as Kubernetes reads client certificates; None without a CN.

    Which certificate it was is told as the credential, by its digest.

    The signature is not looked at: the server has verified it. Remembered per certificate, because a client sends
    the same one with every request. Raises ValueError when `der` is not a certificate, or names more than one user.
    """
    try:
        subject = subject_of(x509.load_der_x509_certificate(der).subject)
    except TypeError as error:  # an attribute of a type that it cannot have
        raise ValueError(str(error)) from error
    if not subject.user:
        return None
    return Identity(
        subject.user, subject.groups, extra={CREDENTIAL: (f"X509SHA256={hashlib.sha256(der).hexdigest()}",)}
    )


def _texts(name: x509.Name, kind: ObjectIdentifier) -> tuple[str, ...]:
    return tuple(str(attribute.value) for attribute in name.get_attributes_for_oid(kind))


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
