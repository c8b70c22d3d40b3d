"""Certificate signing requests that no library makes: PKCS#10 put together by hand, at random."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from random import Random

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

CN, ORG = "2.5.4.3", "2.5.4.10"
EXTENSIONS, MICROSOFT, PASSWORD = "1.2.840.113549.1.9.14", "1.3.6.1.4.1.311.2.1.14", "1.2.840.113549.1.9.7"
STRINGS = {0x0C: "utf-8", 0x13: "utf-8", 0x14: "latin-1", 0x16: "utf-8", 0x1E: "utf-16-be", 0x1C: "utf-32-be"}
USERS = (
    "system:node:n1",
    "system:node:n9",
    "system:kube-controller-manager",
    "kubernetes-admin",
    "",
    "system:node:n9\0",
    "\ufeffsystem:node:n9",
    "system:node:n9 ",
    "system:node:ｎ9",
    "system:node:n9\nX-Remote-Group: system:masters",
    "system:node:" + "n" * 40,
)
GROUPS = ("system:nodes", "system:masters", "", "system:nodes ", "system:nodes,system:masters", "dev")
OTHER_OIDS = ("2.5.4.6", "2.5.4.11", "2.5.4.5", "2.5.4.45", "0.9.2342.19200300.100.1.1", "1.3.6.1.4.1.57683.2")
HOSTS = ("n9", "n1", "N9", "n9.", "kubernetes", "kubernetes.default.svc", "api.example.com", "www.bank.example", "*.n9")
ADDRESSES = ("0a000009", "0a000001", "7f000001", "0a600001", "00" * 10 + "ffff0a000009", "0a000000ff000000", "0a")


def tlv(tag: int, *parts: bytes) -> bytes:
    content = b"".join(parts)
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + content


def oid(text: str) -> bytes:
    first, second, *rest = (int(part) for part in text.split("."))
    coded = b""
    for number in (first * 40 + second, *rest):
        digits = [number & 0x7F]
        while number := number >> 7:
            digits.append(0x80 | (number & 0x7F))
        coded += bytes(reversed(digits))
    return tlv(0x06, coded)


@cache
def a_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def key_pem() -> bytes:
    return a_key().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@dataclass
class Asked:
    """A request: relative names of (OID, tag of the string, text), attributes and extensions as DER."""

    names: list[list[tuple[str, int, str]]]
    attributes: list[bytes] = field(default_factory=list)
    extensions: list[bytes] = field(default_factory=list)

    def texts(self, kind: str) -> list[str]:
        return [text for relative in self.names for oid_, _, text in relative if oid_ == kind]

    def pem(self) -> bytes:
        relatives = (tlv(0x31, *(_attribute(*part) for part in relative)) for relative in self.names)
        spki = a_key().public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        attributes = list(self.attributes)
        if self.extensions:
            attributes.append(attribute(EXTENSIONS, tlv(0x30, *self.extensions)))
        info = tlv(0x30, tlv(0x02, b"\0"), tlv(0x30, *relatives), spki, tlv(0xA0, *attributes))
        signature = a_key().sign(info, ec.ECDSA(hashes.SHA256()))
        der = tlv(0x30, info, tlv(0x30, oid("1.2.840.10045.4.3.2")), tlv(0x03, b"\0", signature))
        body = base64.encodebytes(der)
        return b"-----BEGIN CERTIFICATE REQUEST-----\n%b-----END CERTIFICATE REQUEST-----\n" % body


def _attribute(kind: str, tag: int, text: str) -> bytes:
    coded = b"\0" + text.encode() if tag == 0x03 else text.encode(STRINGS[tag], "replace")
    return tlv(0x30, oid(kind), tlv(tag, coded))


def attribute(kind: str, *values: bytes) -> bytes:
    return tlv(0x30, oid(kind), tlv(0x31, *values))


def extension(kind: str, value: bytes, *, critical: bool = False) -> bytes:
    return tlv(0x30, oid(kind), tlv(0x01, b"\xff") if critical else b"", tlv(0x04, value))


def alternatives(*names: bytes) -> bytes:
    return extension("2.5.29.17", tlv(0x30, *names))


def dns(name: str) -> bytes:
    return tlv(0x82, name.encode())


def address(packed: str) -> bytes:
    return tlv(0x87, bytes.fromhex(packed))


def plain(user: str, groups: Sequence[str] = ("system:nodes",), *, tag: int = 0x0C) -> Asked:
    return Asked([*([(ORG, tag, group)] for group in groups), [(CN, tag, user)]])


def random_request(random: Random) -> Asked:
    """Mostly nearly right, for node n9."""
    asked = plain("system:node:n9" if random.random() < 0.7 else random.choice(USERS), tag=random.choice((0x0C, 0x13)))
    for _ in range(random.choice((0, 0, 1, 1, 2, 3))):
        random.choice((_more_names, _other_string, _joined, _shuffled, _more_parts, _more_parts))(asked, random)
    if random.random() < 0.4:
        asked.extensions.append(alternatives(*(_alternative(random) for _ in range(random.randint(1, 3)))))
    return asked


def _more_names(asked: Asked, random: Random) -> None:
    kind, text = random.choice(
        (
            (CN, random.choice(USERS)),
            (ORG, random.choice(GROUPS)),
            (random.choice(OTHER_OIDS), random.choice(("DE", "x"))),
        )
    )
    asked.names.insert(random.randint(0, len(asked.names)), [(kind, random.choice((*STRINGS, 0x03)), text)])


def _other_string(asked: Asked, random: Random) -> None:
    relative = random.choice(asked.names)
    kind, _, text = relative[0]
    relative[0] = kind, random.choice((*STRINGS, 0x03)), text


def _joined(asked: Asked, random: Random) -> None:
    asked.names[:] = [[part for relative in asked.names for part in relative]]


def _shuffled(asked: Asked, random: Random) -> None:
    random.shuffle(asked.names)


def _more_parts(asked: Asked, random: Random) -> None:
    extensions = (
        extension("2.5.29.19", tlv(0x30, tlv(0x01, b"\xff")), critical=True),
        extension("2.5.29.19", tlv(0x30)),
        extension("2.5.29.15", tlv(0x03, b"\x07\x80")),
        extension("2.5.29.15", tlv(0x03, b"\x02\x04")),
        extension("2.5.29.37", tlv(0x30, oid("1.3.6.1.5.5.7.3.2"))),
        extension("2.5.29.37", tlv(0x30, oid("2.5.29.37.0"))),
        extension("2.5.29.14", tlv(0x04, b"key")),
        extension("1.2.3.4", b"\x05\x00", critical=True),
        alternatives(dns("n9")),
        alternatives(dns("n9")),
    )
    if random.random() < 0.7:
        asked.extensions.append(random.choice(extensions))
        return
    repeated = attribute(EXTENSIONS, tlv(0x30, random.choice(extensions)))
    old = attribute(MICROSOFT, tlv(0x30, alternatives(dns("kubernetes"))))
    asked.attributes.append(
        random.choice((repeated, old, attribute(PASSWORD, tlv(0x0C, b"secret")), attribute("1.2.3")))
    )


def _alternative(random: Random) -> bytes:
    others = (
        tlv(0x81, b"a@example.com"),
        tlv(0x86, b"spiffe://x"),
        tlv(0x88, oid("1.2.3")[2:]),
        tlv(0xA4, tlv(0x30)),
        tlv(0xA0, oid("1.2.3"), tlv(0xA0, tlv(0x0C, b"x"))),
        tlv(0x82, b"n9\0.example"),
        tlv(0x82, b"\xff\xfe"),
    )
    return random.choice(
        (
            dns("n9"),
            address("0a000009"),
            dns(random.choice(HOSTS)),
            address(random.choice(ADDRESSES)),
            random.choice(others),
        )
    )
