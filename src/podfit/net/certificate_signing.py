"""Certificate signing requests (PKCS#10) of others: parsed, and signed.

A subject is read by the function that reads those of client certificates (`net.x509`). What is not read is named, so
that no signer signs it.
"""

import base64
import binascii
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from ipaddress import IPv4Address, IPv6Address, ip_address

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from msgspec.structs import replace

from podfit.core.bounded_cache import cached_where_short
from podfit.decide.certificates import RequestedNames
from podfit.net.certificates import Signer
from podfit.net.x509 import Subject, certificate_identity, subject_of

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
_EXTENSION_REQUEST = x509.ObjectIdentifier("1.2.840.113549.1.9.14")
_NAMES = (x509.DNSName, x509.IPAddress, x509.RFC822Name, x509.UniformResourceIdentifier)
_UNREADABLE = (ValueError, TypeError, x509.DuplicateExtension, x509.UnsupportedGeneralNameType)


@cached_where_short(64, longest=16 * 1024)
def read(pem: bytes) -> RequestedNames:
    """Raises ValueError, in the API's words where it has any, for what is no request."""
    request = _load(pem)
    asked = RequestedNames(
        problem=_bad_signature(request), unread="" if _is_alone(pem) else "there is more than one PEM block"
    )
    try:
        subject, extensions = subject_of(request.subject), tuple(request.extensions)
        attributes = tuple(attribute.oid for attribute in request.attributes)
    except _UNREADABLE as error:
        return replace(asked, unread=f"it cannot be read: {error}")
    names = _names(request)

    def of(kind: type[x509.GeneralName]) -> tuple[str, ...]:
        return tuple(str(name.value) for name in names if isinstance(name, kind))

    return replace(
        asked,
        common_name=subject.user,
        organizations=subject.groups,
        dns=of(x509.DNSName),
        addresses=of(x509.IPAddress),
        emails=of(x509.RFC822Name),
        uris=of(x509.UniformResourceIdentifier),
        uses=tuple(use for extension in extensions for use in _uses(extension.value)),
        unread=asked.unread
        or _unread_subject(subject)
        or _unread_parts(attributes, extensions)
        or _unread_names(names),
    )


def _is_alone(pem: bytes) -> bool:
    blocks = _blocks(pem)
    return next(blocks, None) is not None and next(blocks, None) is None


def _unread_subject(subject: Subject) -> str:
    if subject.others:
        return f"the subject has attributes that are not read: {', '.join(subject.others)}"
    return "the subject has several attributes in one relative name" if subject.nested else ""


def _unread_parts(
    attributes: Sequence[x509.ObjectIdentifier], extensions: "Sequence[x509.Extension[x509.ExtensionType]]"
) -> str:
    for attribute in attributes:
        if attribute != _EXTENSION_REQUEST or attributes.count(attribute) > 1:
            return f"the request has an attribute that is not read: {attribute.dotted_string}"
    for extension in extensions:
        known = isinstance(extension.value, x509.SubjectAlternativeName | x509.KeyUsage | x509.ExtendedKeyUsage)
        if not known and not (isinstance(extension.value, x509.BasicConstraints) and not extension.value.ca):
            return f"the request has an extension that is not read: {extension.oid.dotted_string}"
    return ""


def _unread_names(names: Iterable[x509.GeneralName]) -> str:
    for name in names:
        if not isinstance(name, _NAMES) or not isinstance(name.value, str | IPv4Address | IPv6Address):
            return f"a subjectAltName is not read: {type(name).__name__} {name.value}"
    return ""


def _uses(extension: x509.ExtensionType) -> Iterator[str]:
    """What a request asks to be used for, in the API's words where it has any."""
    if isinstance(extension, x509.ExtendedKeyUsage):
        purposes = {oid: usage for usage, oid in _PURPOSES.items()}
        yield from (purposes.get(oid.dotted_string, oid.dotted_string) for oid in extension)
    elif isinstance(extension, x509.KeyUsage):
        words = {flag: usage for usage, flag in _KEY_USAGES.items()}
        flags = _ALL_KEY_USAGES if extension.key_agreement else _ALL_KEY_USAGES[:-2]
        yield from (words.get(flag, flag) for flag in flags if getattr(extension, flag))


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
    """A certificate for the request, PEM: the names that `read` reads, and its key; for these uses, and no authority.

    Raises ValueError when the request is none, or the certificate would say something else than was read.
    """
    asked, request, (certificate, key) = read(pem), _load(pem), issuer
    builder = (
        x509.CertificateBuilder()
        .subject_name(_subject(asked))
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
    if names := _alternatives(asked):
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    made = builder.sign(key, hashes.SHA256())
    who = certificate_identity(made.public_bytes(Encoding.DER))
    if who is None or (who.user, who.groups) != (asked.common_name, asked.organizations):
        raise ValueError("the certificate would name somebody else")
    return made.public_bytes(Encoding.PEM)


def _subject(asked: RequestedNames) -> x509.Name:
    parts = [(NameOID.ORGANIZATION_NAME, text) for text in asked.organizations]
    parts.append((NameOID.COMMON_NAME, asked.common_name))
    # names of nodes may be longer than X.509's 64 letters; all servers of Kubernetes read them
    return x509.Name([x509.NameAttribute(oid, text, _validate=False) for oid, text in parts])


def _alternatives(asked: RequestedNames) -> list[x509.GeneralName]:
    return [
        *(x509.DNSName(name) for name in asked.dns),
        *(x509.IPAddress(ip_address(address)) for address in asked.addresses),
        *(x509.RFC822Name(name) for name in asked.emails),
        *(x509.UniformResourceIdentifier(name) for name in asked.uris),
    ]


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


def _names(request: "x509.CertificateSigningRequest") -> tuple[x509.GeneralName, ...]:
    try:
        return tuple(request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        return ()


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
