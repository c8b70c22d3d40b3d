"""Certificate signing requests (PKCS#10) of others: parsed, and signed."""

import base64
import binascii
from collections.abc import Iterator
from datetime import datetime

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from podfit.core.bounded_cache import cached_where_short
from podfit.decide.certificates import RequestedNames
from podfit.net.certificates import Signer

_BEGIN, _END, _DASHES = b"-----BEGIN ", b"-----END ", b"-----"
_LONGEST_LABEL = 100
_NO_REQUEST = "PEM block type must be CERTIFICATE REQUEST"
_KEY_USAGES = {"digital signature": "digital_signature", "key encipherment": "key_encipherment"}
_ALL_KEY_USAGES = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)
_PURPOSES = {"server auth": "1.3.6.1.5.5.7.3.1", "client auth": "1.3.6.1.5.5.7.3.2"}
"""The usages that any of the cluster's signers allows."""


@cached_where_short(64, longest=16 * 1024)
def read(pem: bytes) -> RequestedNames:
    """Raises ValueError, in the API's words where it has any, for what is no request."""
    request = _load(pem)

    def subject(oid: x509.ObjectIdentifier) -> tuple[str, ...]:
        return tuple(str(attribute.value) for attribute in request.subject.get_attributes_for_oid(oid))

    names = _names(request)

    def of(kind: type[x509.GeneralName]) -> tuple[str, ...]:
        return tuple(str(name.value) for name in names or () if isinstance(name, kind))

    return RequestedNames(
        next(reversed(subject(NameOID.COMMON_NAME)), ""),
        subject(NameOID.ORGANIZATION_NAME),
        of(x509.DNSName),
        of(x509.IPAddress),
        of(x509.RFC822Name),
        of(x509.UniformResourceIdentifier),
        _bad_signature(request),
    )


def request_problem(pem: bytes) -> str:
    """What is wrong with a request; empty when nothing is."""
    try:
        return read(pem).problem
    except ValueError as error:
        return str(error)


def certificate_problem(pem: bytes) -> str:
    """What is wrong with a chain of certificates; empty when nothing is."""
    blocks = list(_blocks(pem))
    for label, content in blocks:
        if label != b"CERTIFICATE":
            return f'only CERTIFICATE PEM blocks are allowed, found "{label.decode(errors="replace")}"'
        if b":" in content:
            return "no PEM block headers are permitted"
        try:
            x509.load_pem_x509_certificate(b"-----BEGIN CERTIFICATE-----\n%b-----END CERTIFICATE-----\n" % content)
        except ValueError as error:
            return str(error)
    return "" if blocks else "must contain at least one CERTIFICATE PEM block"


def ends(pem: bytes) -> datetime:
    """When the certificate is over. Raises ValueError when it is none."""
    return x509.load_pem_x509_certificate(pem).not_valid_after_utc


def signed(issuer: "Signer", pem: bytes, usages: tuple[str, ...], begins: datetime, until: datetime) -> bytes:
    """A certificate for the request, PEM: its subject, its names and its key; for these uses, and no authority.

    Raises ValueError when the request is none.
    """
    request, (certificate, key) = _load(pem), issuer
    builder = (
        x509.CertificateBuilder()
        .subject_name(request.subject)
        .issuer_name(certificate.subject)
        .public_key(request.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(until)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
    )
    wanted = {_KEY_USAGES[usage] for usage in usages if usage in _KEY_USAGES}
    if wanted:
        flags = {name: name in wanted for name in _ALL_KEY_USAGES}
        builder = builder.add_extension(x509.KeyUsage(**flags), critical=True)
    if purposes := [x509.ObjectIdentifier(_PURPOSES[usage]) for usage in usages if usage in _PURPOSES]:
        builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
    if names := _names(request):
        builder = builder.add_extension(names, critical=False)
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)


def _load(pem: bytes) -> "x509.CertificateSigningRequest":
    """The request of the first PEM block."""
    label, content = next(_blocks(pem), (b"", b""))
    if label != b"CERTIFICATE REQUEST":
        raise ValueError(_NO_REQUEST)
    try:
        der = base64.b64decode(b"".join(content.split()), validate=True)
    except binascii.Error:
        raise ValueError(_NO_REQUEST) from None
    return x509.load_der_x509_csr(der)


def _blocks(pem: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Label and content of each PEM block, in one pass; a block ends with the next end, which has to be its own."""
    place = 0
    while (begin := pem.find(_BEGIN, place)) >= 0 and (end := pem.find(_END, begin)) >= 0:
        start = begin + len(_BEGIN)
        close = pem.find(_DASHES, start, start + _LONGEST_LABEL)
        label, place = pem[start:close], end + len(_END)
        if close < 0 or close >= end or b"\n" in label or b"\r" in label:
            place = start
        elif pem.startswith(label + _DASHES, place):
            yield label, pem[close + len(_DASHES) : end].lstrip()


def _names(request: "x509.CertificateSigningRequest") -> "x509.SubjectAlternativeName | None":
    try:
        return request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return None


def _bad_signature(request: "x509.CertificateSigningRequest") -> str:
    try:
        good, key = request.is_signature_valid, request.public_key()
    except (UnsupportedAlgorithm, ValueError):
        return "x509: cannot verify signature: algorithm unimplemented"
    if good:
        return ""
    if isinstance(key, rsa.RSAPublicKey):
        return "crypto/rsa: verification error"
    return f"x509: {'ECDSA' if isinstance(key, ec.EllipticCurvePublicKey) else 'Ed25519'} verification failure"
