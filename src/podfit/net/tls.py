"""The cluster's own certificate authority, and the TLS contexts made from what it issues.

One authority signs everything and lives in a directory. Keys are EC P-256, because making an RSA key takes 15 to 65 ms
and an EC key none. What is on disk is used again while it is signed by this authority, names what is asked for and is
not near its end; anything else, a damaged file too, is issued anew. `cryptography` takes 60 ms to import, so nothing
here imports it before it is used.

    authority = Authority.load(Path("pki"), clock=clock)
    server = authority.server("apiserver", hosts=("127.0.0.1", "kubernetes"))
    admin = authority.client("admin", user="kubernetes-admin", groups=("system:masters",))
    context = server_context(server)
"""

import logging
import ssl
import tempfile
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Self

from podfit.core.clock import Clock
from podfit.net.files import write_atomic

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

log = logging.getLogger(__name__)

AUTHORITY_LIFE = timedelta(days=3650)
LEAF_LIFE = timedelta(days=365)
RENEW_BEFORE = timedelta(days=30)
SKEW = timedelta(minutes=5)  # how far ahead of ours another machine's clock may be read as


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key, PEM, in two files of mode 0600."""

    certificate_file: Path
    key_file: Path

    @property
    def certificate(self) -> bytes:
        return self.certificate_file.read_bytes()

    @property
    def key(self) -> bytes:
        return self.key_file.read_bytes()


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a certificate is to say."""

    user: str
    groups: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()  # DNS names and IP addresses; a server certificate when there are any
    authority: bool = False


class Authority:
    """Issues key pairs into its directory, as `<name>.crt` and `<name>.key`."""

    def __init__(self, directory: Path, clock: Clock, certificate: "x509.Certificate",
                 key: "ec.EllipticCurvePrivateKey") -> None:
        self.directory = directory
        self._clock = clock
        self._certificate = certificate
        self._key = key

    @classmethod
    def load(cls, directory: Path, *, clock: Clock) -> Self:
        """The authority that lives in `directory`, made there when there is none that can still be used."""
        wanted = _Wanted("podfit-ca", authority=True)
        pair = _files(directory, "ca")
        found = _usable(pair, wanted, clock, issuer=None) or _issue(pair, wanted, clock, issuer=None)
        return cls(directory, clock, *found)

    @property
    def certificate(self) -> bytes:
        """PEM: what others have to trust."""
        from cryptography.hazmat.primitives.serialization import Encoding

        return self._certificate.public_bytes(Encoding.PEM)

    def server(self, name: str, *, hosts: tuple[str, ...]) -> KeyPair:
        """A server certificate for DNS names and IP addresses."""
        return self._pair(name, _Wanted(name, hosts=hosts))

    def client(self, name: str, *, user: str, groups: tuple[str, ...] = ()) -> KeyPair:
        """A client certificate that makes its bearer `user`, a member of `groups`."""
        return self._pair(name, _Wanted(user, groups))

    def _pair(self, name: str, wanted: _Wanted) -> KeyPair:
        pair = _files(self.directory, name)
        issuer = (self._certificate, self._key)
        if _usable(pair, wanted, self._clock, issuer=self._certificate) is None:
            _issue(pair, wanted, self._clock, issuer=issuer)
        return pair


def server_context(pair: KeyPair) -> ssl.SSLContext:
    """TLS for a server; `client_certificates.Trust` makes it ask clients who they are."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.load_cert_chain(pair.certificate_file, pair.key_file)
    return context


def client_context(
    *, authorities: bytes | None = None, certificate: bytes | None = None, key: bytes | None = None,
    verify: bool = True,
) -> ssl.SSLContext:
    """TLS for a client: whom to trust (PEM; None for the machine's own bundle) and the certificate to show (PEM)."""
    context = ssl.create_default_context(cadata=authorities.decode("ascii") if authorities is not None else None)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate is not None and key is not None:
        with tempfile.NamedTemporaryFile() as file:  # `ssl` reads a key only from a file; this one is 0600
            file.write(certificate.rstrip() + b"\n" + key)
            file.flush()
            context.load_cert_chain(file.name)
    return context


def _files(directory: Path, name: str) -> KeyPair:
    return KeyPair(directory / f"{name}.crt", directory / f"{name}.key")


def _usable(
    pair: KeyPair, wanted: _Wanted, clock: Clock, *, issuer: "x509.Certificate | None",
) -> "tuple[x509.Certificate, ec.EllipticCurvePrivateKey] | None":
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        certificate = x509.load_pem_x509_certificate(pair.certificate)
        key = load_pem_private_key(pair.key, None)
        certificate.verify_directly_issued_by(issuer or certificate)
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
    return certificate, key


def _issue(
    pair: KeyPair, wanted: _Wanted, clock: Clock, *,
    issuer: "tuple[x509.Certificate, ec.EllipticCurvePrivateKey] | None",
) -> "tuple[x509.Certificate, ec.EllipticCurvePrivateKey]":
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
    return certificate, key


def _extensions(
    wanted: _Wanted, key: "ec.EllipticCurvePublicKey", issuer: "ec.EllipticCurvePublicKey | None",
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


def _subject(wanted: _Wanted) -> "x509.Name":
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
