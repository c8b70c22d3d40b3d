"""Certificate signing requests (PKCS#10) of this process: key, request, and the check of the certificate that comes
back.
"""

from datetime import datetime
from ipaddress import ip_address
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import NameOID

from podfit.net.files import write_atomic

EARLIEST, LATEST = 0.7, 0.9  # of a certificate's life, when it is renewed: at random, as upstream


class Pair(msgspec.Struct, frozen=True):
    """A certificate, with those between it and the authority, and its key; PEM."""

    certificate: bytes
    key: bytes

    @property
    def both(self) -> bytes:
        return self.certificate.rstrip() + b"\n" + self.key

    def keep(self, path: Path) -> None:
        """In one file of mode 0600, so that the two always belong together."""
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_atomic(path, self.both)


class Names(msgspec.Struct, frozen=True):
    """Whom a certificate is for: subject, and for a server its DNS names and IP addresses."""

    user: str
    groups: tuple[str, ...] = ()
    dns: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()


class Life(msgspec.Struct, frozen=True):
    begins: datetime
    ends: datetime

    def renewal(self, fraction: float) -> datetime:
        """When a new one is asked for; `fraction` (0 to 1) is drawn, so that not all nodes of a cluster ask at once."""
        return self.begins + (self.ends - self.begins) * (EARLIEST + (LATEST - EARLIEST) * fraction)


def new_request(names: Names) -> tuple[bytes, bytes]:
    """A new EC key on P-256 and the request that it signs, both PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in names.groups]
    builder = x509.CertificateSigningRequestBuilder().subject_name(
        x509.Name([*subject, x509.NameAttribute(NameOID.COMMON_NAME, names.user)])
    )
    hosts: list[x509.GeneralName] = [x509.DNSName(name) for name in names.dns]
    hosts += [x509.IPAddress(ip_address(address)) for address in names.addresses]
    if hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName(hosts), critical=False)
    request = builder.sign(key, hashes.SHA256())
    return (key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), request.public_bytes(Encoding.PEM))


def life_of(certificate: bytes) -> Life:
    """Raises ValueError for what is no certificate."""
    found = x509.load_pem_x509_certificate(certificate)
    return Life(found.not_valid_before_utc, found.not_valid_after_utc)


def read_pair(path: Path, names: Names, now: datetime) -> Pair | None:
    """What `Pair.keep` wrote, if it is for these names and still good; None when there is nothing of use."""
    try:
        content = path.read_bytes()
        certificate, key = x509.load_pem_x509_certificate(content), load_pem_private_key(content, None)
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (FileNotFoundError, ValueError, TypeError, x509.ExtensionNotFound):
        return None
    same_names = {str(name.value) for name in found} == {*names.dns, *names.addresses}
    same_user = [attribute.value for attribute in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == [
        names.user
    ]
    in_time = certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc
    if not (same_names and same_user and in_time and key.public_key() == certificate.public_key()):
        return None
    start = content.index(b"-----BEGIN", content.rindex(b"-----END CERTIFICATE-----"))
    return Pair(content[:start], content[start:])
