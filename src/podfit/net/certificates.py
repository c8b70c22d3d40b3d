"""Serving certificates: what one has to contain, whether the one on disk does, and how it is made."""

import logging
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import TypeAlias

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from podfit.core.clock import Clock
from podfit.net.files import write_atomic
from podfit.net.tls import KeyPair

Signer: TypeAlias = tuple[x509.Certificate, ec.EllipticCurvePrivateKey]

log = logging.getLogger(__name__)

AUTHORITY_LIFE = timedelta(days=3650)
LEAF_LIFE = timedelta(days=365)
RENEW_BEFORE = timedelta(days=30)
SKEW = timedelta(minutes=5)  # how far ahead of ours another machine's clock may be read as


class CertificateSpec(msgspec.Struct, frozen=True):
    """What a certificate is to say."""

    user: str
    groups: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()  # DNS names and IP addresses; a server certificate when there are any
    authority: bool = False


class Damaged(Exception):
    """A key or certificate that is missing or cannot be read, or two that do not belong together."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} {reason}")
        self.path, self.reason = path, reason


def read_pair(pair: KeyPair, issuer: "Signer | None") -> "Signer":
    """The pair that is there, signed by the issuer, or else by itself. Raises Damaged."""
    key = read_key(pair.key_file)
    try:
        certificate = x509.load_pem_x509_certificate(_content(pair.certificate_file))
    except ValueError:
        raise Damaged(pair.certificate_file, "is no certificate in PEM") from None
    try:
        certificate.verify_directly_issued_by(issuer[0] if issuer else certificate)
    except (ValueError, TypeError, InvalidSignature):
        raise Damaged(pair.certificate_file, "was signed by another authority") from None
    if key.public_key() != certificate.public_key():
        raise Damaged(pair.key_file, "is not the key of its certificate")
    return certificate, key


def read_key(path: Path) -> "ec.EllipticCurvePrivateKey":
    """Raises Damaged."""
    try:
        key = load_pem_private_key(_content(path), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise Damaged(path, "is no private key in PEM") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise Damaged(path, "is no EC key")
    return key


def new_key(path: Path) -> "ec.EllipticCurvePrivateKey":
    """A new key on P-256, in a file of mode 0600."""
    key = ec.generate_private_key(ec.SECP256R1())
    write_atomic(path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return key


def _content(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise Damaged(path, "is missing") from None
    if not content.strip():
        raise Damaged(path, "is empty")
    return content


def usable(pair: KeyPair, wanted: CertificateSpec, clock: Clock, issuer: "Signer | None") -> "x509.Certificate | None":
    """The certificate that is there, if it is what is wanted and was signed by the issuer, or else by itself."""
    try:
        certificate, _ = read_pair(pair, issuer)
    except Damaged as damage:
        if pair.certificate_file.exists():
            log.warning("certificate is issued anew file=%s reason=%s", damage.path, damage.reason)
        return None
    fits = named(certificate, wanted) and _hosts(certificate) == wanted.hosts
    return certificate if fits and in_time(certificate, clock) else None


def named(certificate: "x509.Certificate", wanted: CertificateSpec) -> bool:
    return certificate.subject == _subject(wanted)


def in_time(certificate: "x509.Certificate", clock: Clock) -> bool:
    """Neither near its end nor, after the clock was set back, of a time to come."""
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return begins <= clock.now() < ends - RENEW_BEFORE


def issue(
    pair: KeyPair,
    wanted: CertificateSpec,
    clock: Clock,
    issuer: "Signer | None",
    key: "ec.EllipticCurvePrivateKey | None" = None,
) -> "x509.Certificate":
    """A new pair in these files, signed by the issuer, or else by itself; of `key`, where it is to stay."""
    key = key or new_key(pair.key_file)
    subject = _subject(wanted)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer[0].subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(clock.now() - SKEW)
        .not_valid_after(clock.now() + (AUTHORITY_LIFE if wanted.authority else LEAF_LIFE))
    )
    for extension, critical in _extensions(wanted, key.public_key(), issuer[1].public_key() if issuer else None):
        builder = builder.add_extension(extension, critical=critical)
    certificate = builder.sign(issuer[1] if issuer else key, hashes.SHA256())
    write_atomic(pair.certificate_file, certificate.public_bytes(Encoding.PEM))
    return certificate


def _extensions(
    wanted: CertificateSpec, key: "ec.EllipticCurvePublicKey", issuer: "ec.EllipticCurvePublicKey | None"
) -> "list[tuple[x509.ExtensionType, bool]]":
    extensions: list[tuple[x509.ExtensionType, bool]] = [
        (x509.BasicConstraints(ca=wanted.authority, path_length=None), True),
        (
            x509.KeyUsage(
                digital_signature=True,
                key_cert_sign=wanted.authority,
                crl_sign=wanted.authority,
                content_commitment=False,
                key_encipherment=False,
                data_encipherment=False,
                key_agreement=False,
                encipher_only=False,
                decipher_only=False,
            ),
            True,
        ),
        (x509.SubjectKeyIdentifier.from_public_key(key), False),
    ]
    if issuer is not None:
        extensions.append((x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer), False))
    if wanted.hosts:
        extensions.append((x509.SubjectAlternativeName([_host_name(host) for host in wanted.hosts]), False))
    if not wanted.authority:
        usage = ExtendedKeyUsageOID.SERVER_AUTH if wanted.hosts else ExtendedKeyUsageOID.CLIENT_AUTH
        extensions.append((x509.ExtendedKeyUsage([usage]), False))
    return extensions


def _subject(wanted: CertificateSpec) -> "x509.Name":
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in wanted.groups]
    return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, wanted.user)])


def _host_name(host: str) -> "x509.GeneralName":
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def hosts_of(file: Path) -> tuple[str, ...]:
    """DNS names and IP addresses of the certificate in a file; none where there is no certificate."""
    try:
        return _hosts(x509.load_pem_x509_certificate(file.read_bytes()))
    except (ValueError, OSError):
        return ()


def hosts_of_der(der: bytes) -> tuple[str, ...]:
    """DNS names and IP addresses of a certificate. Raises ValueError for what is none."""
    return _hosts(x509.load_der_x509_certificate(der))


def _hosts(certificate: "x509.Certificate") -> tuple[str, ...]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    return tuple(str(name.value) for name in names)
