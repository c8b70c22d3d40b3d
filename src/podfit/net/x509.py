"""Who a client certificate names.

The subject is read from the certificate's DER itself: it is a handful of nested fields at a known place, and importing
`cryptography` for them would cost the first client with a certificate 50 ms. Nothing is judged here; the server has
verified the certificate before it asks whose it is.
"""

import hashlib
from collections.abc import Iterator

from podfit.core.kept import short
from podfit.net.wire import Identity

CREDENTIAL = "authentication.kubernetes.io/credential-id"
_COMMON_NAME, _ORGANIZATION = bytes((0x55, 4, 3)), bytes((0x55, 4, 10))  # 2.5.4.3 and 2.5.4.10
_SUBJECT = 4  # after serial number, algorithm, issuer and validity
_SEQUENCE, _SET, _OBJECT_ID, _INTEGER, _VERSION = 0x30, 0x31, 0x06, 0x02, 0xA0
_CODECS = {
    0x0C: "utf-8",
    0x12: "ascii",
    0x13: "ascii",
    0x14: "latin-1",
    0x16: "ascii",
    0x1A: "ascii",
    0x1C: "utf-32-be",
    0x1E: "utf-16-be",
}


@short(4096, longest=4096)
def certificate_identity(der: bytes) -> Identity | None:
    """Subject CN is the user and each O a group, as Kubernetes reads client certificates; None without a CN.

    Which certificate it was is told as the credential, by its digest.

    The signature is not looked at: the server has verified it. Remembered per certificate, because a client sends
    the same one with every request. Raises ValueError when `der` is not a certificate.
    """
    names = list(_subject(der))
    users = [text for kind, text in names if kind == _COMMON_NAME]
    if not users or not users[0]:
        return None
    groups = tuple(text for kind, text in names if kind == _ORGANIZATION)
    return Identity(users[0], groups, extra={CREDENTIAL: (f"X509SHA256={hashlib.sha256(der).hexdigest()}",)})


def _subject(der: bytes) -> Iterator[tuple[bytes, str]]:
    """The attributes of the subject that are texts, each with its kind, in their order."""
    ((tag, certificate),) = _fields(der)
    signed = list(_fields(_of(_SEQUENCE, next(_fields(_of(_SEQUENCE, (tag, certificate)))))))
    if signed and signed[0][0] == _VERSION:
        signed = signed[1:]
    if len(signed) < 6 or signed[0][0] != _INTEGER:
        raise ValueError("not a certificate")
    for names in _fields(_of(_SEQUENCE, signed[_SUBJECT])):
        for attribute in _fields(_of(_SET, names)):
            kind, value = _fields(_of(_SEQUENCE, attribute))
            if codec := _CODECS.get(value[0]):
                yield _of(_OBJECT_ID, kind), value[1].decode(codec)


def _of(tag: int, field: tuple[int, bytes]) -> bytes:
    if field[0] != tag:
        raise ValueError("not a certificate")
    return field[1]


def _fields(content: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields that follow each other in `content`: tag and content of each. DER: lengths are definite."""
    position = 0
    while position < len(content):
        try:
            tag, length = content[position], content[position + 1]
        except IndexError:
            raise ValueError("a field is cut off") from None
        position += 2
        if length & 0x80:
            size = length & 0x7F
            if not 1 <= size <= 4:
                raise ValueError("a length is not DER")
            length, position = int.from_bytes(content[position : position + size], "big"), position + size
        if position + length > len(content):
            raise ValueError("a field is cut off")
        yield tag, content[position : position + length]
        position += length
