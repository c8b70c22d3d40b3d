"""Certificates: what one is to say, whether the one on disk says it, and how it is made."""

import logging
from datetime import timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from podfit.core.clock import Clock
from podfit.net.files import write_atomic
from podfit.net.tls import KeyPair

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

    Signer: TypeAlias = tuple[x509.Certificate, ec.EllipticCurvePrivateKey]

log = logging.getLogger(__name__)

AUTHORITY_LIFE = timedelta(days=3650)
LEAF_LIFE = timedelta(days=365)
RENEW_BEFORE = timedelta(days=30)
SKEW = timedelta(minutes=5)  # how far ahead of ours another machine's clock may be read as


class Wanted(msgspec.Struct, frozen=True):
    """What a certificate is to say."""

    user: str
    groups: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()  # DNS names and IP addresses; a server certificate when there are any
    authority: bool = False


def usable(pair: KeyPair, wanted: Wanted, clock: Clock, issuer: "Signer | None") -> "x509.Certificate | None":
    """The certificate that is there, if it is what is wanted and was signed by the issuer, or else by itself."""
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        certificate = x509.load_pem_x509_certificate(pair.certificate)
        key = load_pem_private_key(pair.key, None)
        certificate.verify_directly_issued_by(issuer[0] if issuer else certificate)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, InvalidSignature) as error:
        reason = str(error) or "another authority"
        log.warning("certificate is issued anew file=%s reason=%s", pair.certificate_file, reason)
        return None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        log.warning("certificate is issued anew file=%s reason=the key is another's", pair.certificate_file)
        return None
    near_end = certificate.not_valid_after_utc - RENEW_BEFORE <= clock.now()
    if near_end or certificate.subject != _subject(wanted) or _hosts(certificate) != wanted.hosts:
        return None
    return certificate


def issue(pair: KeyPair, wanted: Wanted, clock: Clock, issuer: "Signer | None") -> "x509.Certificate":
    """A new pair in these files, signed by the issuer, or else by itself."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = ec.generate_private_key(ec.SECP256R1())
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
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    write_atomic(pair.key_file, secret)
    write_atomic(pair.certificate_file, certificate.public_bytes(Encoding.PEM))
    return certificate


def _extensions(
    wanted: Wanted, key: "ec.EllipticCurvePublicKey", issuer: "ec.EllipticCurvePublicKey | None",
) -> "list[tuple[x509.ExtensionType, bool]]":
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID

    extensions: list[tuple[x509.ExtensionType, bool]] = [
        (x509.BasicConstraints(ca=wanted.authority, path_length=None), True),
        (x509.KeyUsage(
            digital_signature=True, key_cert_sign=wanted.authority, crl_sign=wanted.authority, content_commitment=False,
            key_encipherment=False, data_encipherment=False, key_agreement=False, encipher_only=False,
            decipher_only=False), True),
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


def _subject(wanted: Wanted) -> "x509.Name":
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in wanted.groups]
    return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, wanted.user)])


def _host_name(host: str) -> "x509.GeneralName":
    from cryptography import x509

    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _hosts(certificate: "x509.Certificate") -> tuple[str, ...]:
    from cryptography import x509

    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    return tuple(str(name.value) for name in names)
