"""The cluster's own certificate authority, and the TLS contexts made from what it issues.

One authority signs everything and lives in a directory. Keys are EC P-256, because making an RSA key takes 15 to 65 ms
and an EC key none. What is on disk is used again while it is signed by this authority, names what is asked for and is
not near its end; anything else, a damaged file too, is issued anew. `cryptography` takes 60 ms to import, so nothing
here imports it before it is used, and what it has once found good is remembered (`net.issued`).

    authority = Authority.load(Path("pki"), clock=clock)
    server = authority.server("apiserver", hosts=("127.0.0.1", "kubernetes"))
    admin = authority.client("admin", user="kubernetes-admin", groups=("system:masters",))
    context = server_context(server)
"""

import hashlib
import logging
import os
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cached_property
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeAlias, cast

import msgspec

from podfit.core.clock import Clock
from podfit.net.files import write_atomic
from podfit.net.issued import Checked, Issued, digest_of

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

    Signer: TypeAlias = tuple[x509.Certificate, ec.EllipticCurvePrivateKey]

log = logging.getLogger(__name__)

AUTHORITY_LIFE = timedelta(days=3650)
LEAF_LIFE = timedelta(days=365)
RENEW_BEFORE = timedelta(days=30)
SKEW = timedelta(minutes=5)  # how far ahead of ours another machine's clock may be read as


class KeyPair(msgspec.Struct, frozen=True):
    """A certificate and its private key, PEM, in two files of mode 0600."""

    certificate_file: Path
    key_file: Path

    @property
    def certificate(self) -> bytes:
        return self.certificate_file.read_bytes()

    @property
    def key(self) -> bytes:
        return self.key_file.read_bytes()


class _Wanted(msgspec.Struct, frozen=True):
    """What a certificate is to say."""

    user: str
    groups: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()  # DNS names and IP addresses; a server certificate when there are any
    authority: bool = False


class Authority:
    """Issues key pairs into its directory, as `<name>.crt` and `<name>.key`."""

    def __init__(self, pair: KeyPair, clock: Clock, issued: Issued) -> None:
        self.directory = pair.certificate_file.parent
        self.certificate = pair.certificate
        """PEM: what others have to trust."""
        self._pair_of_own = pair
        self._clock, self._issued = clock, issued
        self._clients: dict[bytes, Checked] = {}

    @classmethod
    def load(cls, directory: Path, *, clock: Clock, name: str = "podfit-ca") -> Self:
        """The authority that lives in `directory`, made there when there is none that can still be used."""
        issued, pair = Issued(directory), _files(directory, "ca")
        _settle(pair, _Wanted(name, authority=True), clock, issued, issuer=None)
        return cls(pair, clock, issued)

    @cached_property
    def _signer(self) -> "Signer":
        from cryptography import x509
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        key = load_pem_private_key(self._pair_of_own.key, None)
        return x509.load_pem_x509_certificate(self.certificate), cast("ec.EllipticCurvePrivateKey", key)

    def server(self, name: str, *, hosts: tuple[str, ...]) -> KeyPair:
        """A server certificate for DNS names and IP addresses."""
        return self._pair(name, _Wanted(name, hosts=hosts))[0]

    def client(self, name: str, *, user: str, groups: tuple[str, ...] = ()) -> KeyPair:
        """A client certificate that makes its bearer `user`, a member of `groups`."""
        pair, checked = self._pair(name, _Wanted(user, groups))
        shown = hashlib.sha256(ssl.PEM_cert_to_DER_cert(pair.certificate.decode("ascii"))).digest()
        self._clients[shown] = checked
        return pair

    def ends(self) -> datetime:
        """When the authority's own certificate is over."""
        return self._signer[0].not_valid_after_utc

    def sign(self, request: bytes, usages: tuple[str, ...], begins: datetime, until: datetime) -> bytes:
        """A certificate (PEM) for who made this request (PKCS#10 in PEM). Whether it is to have one is not asked."""
        from podfit.net.requests import signed

        return signed(self._signer, request, usages, begins, until)

    def knows(self, der: bytes) -> bool:
        """Whether this is a client certificate (DER) that this authority has handed out and that is in its time."""
        checked = self._clients.get(hashlib.sha256(der).digest())
        return checked is not None and checked.begins <= time.time() < checked.ends

    def _pair(self, name: str, wanted: _Wanted) -> tuple[KeyPair, Checked]:
        pair = _files(self.directory, name)
        return pair, _settle(pair, wanted, self._clock, self._issued, issuer=self)


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
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif authorities is not None:
        context.load_verify_locations(cadata=authorities.decode("ascii"))
    else:
        context.load_default_certs()
    if certificate is not None and key is not None:
        with _key_file(certificate.rstrip() + b"\n" + key) as path:
            context.load_cert_chain(path)
    return context


@contextmanager
def _key_file(content: bytes) -> Iterator[str]:
    """`ssl` reads a key only from a file: one in memory where there are such, else a short-lived one of mode 0600."""
    if hasattr(os, "memfd_create"):
        with open(os.memfd_create("podfit-key"), "wb", buffering=0) as memory:
            memory.write(content)
            yield f"/proc/self/fd/{memory.fileno()}"
        return
    import tempfile

    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        yield file.name


def _files(directory: Path, name: str) -> KeyPair:
    return KeyPair(directory / f"{name}.crt", directory / f"{name}.key")


def _settle(pair: KeyPair, wanted: _Wanted, clock: Clock, issued: Issued, *, issuer: Authority | None) -> Checked:
    """Have the pair that is wanted: what is there when it is good, else a new one."""
    name, meaning = pair.certificate_file.stem, repr(wanted)
    trusted = issuer.certificate if issuer else b""
    found = issued.find(name, _digest(pair, trusted), meaning)
    if found is not None and clock.now() < datetime.fromtimestamp(found.ends, UTC) - RENEW_BEFORE:
        return found
    signer = issuer._signer if issuer else None
    certificate = _usable(pair, wanted, clock, signer) or _issue(pair, wanted, clock, signer)
    checked = Checked(
        _digest(pair, trusted), meaning, certificate.not_valid_before_utc.timestamp(),
        certificate.not_valid_after_utc.timestamp())
    issued.add(name, checked)
    return checked


def _digest(pair: KeyPair, trusted: bytes) -> str:
    """Of what a check looks at; of a pair that is not there, none that was ever recorded."""
    try:
        return digest_of(trusted, pair.certificate, pair.key)
    except OSError:
        return ""


def _usable(pair: KeyPair, wanted: _Wanted, clock: Clock, issuer: "Signer | None") -> "x509.Certificate | None":
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


def _issue(pair: KeyPair, wanted: _Wanted, clock: Clock, issuer: "Signer | None") -> "x509.Certificate":
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
