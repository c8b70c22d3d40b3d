import hashlib
import ssl
import subprocess
import sys
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID, ObjectIdentifier
from hypothesis import given, settings
from hypothesis import strategies as st

from podfit.net.authority import Authority
from podfit.net.certificates import LEAF_LIFE
from podfit.net.system import SystemClock
from podfit.net.tls import KeyPair, client_context, server_context
from podfit.net.wire import Identity
from podfit.net.x509 import certificate_identity
from support.clock import FakeClock

SOME_KEY = ec.generate_private_key(ec.SECP256R1())
SOME_CERTIFICATE = (
    x509.CertificateBuilder()
    .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "somebody")]))
    .issuer_name(x509.Name([]))
    .public_key(SOME_KEY.public_key())
    .serial_number(1)
    .not_valid_before(SystemClock().now())
    .not_valid_after(SystemClock().now() + LEAF_LIFE)
    .sign(SOME_KEY, hashes.SHA256())
    .public_bytes(Encoding.DER)
)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def identity(pair: KeyPair) -> Identity | None:
    return certificate_identity(ssl.PEM_cert_to_DER_cert(pair.certificate.decode()))


def credential(pair: KeyPair) -> dict[str, tuple[str, ...]]:
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(pair.certificate.decode())).hexdigest()
    return {"authentication.kubernetes.io/credential-id": (f"X509SHA256={digest}",)}


def serial(pair: KeyPair) -> int:
    return x509.load_pem_x509_certificate(pair.certificate).serial_number


def test_what_is_there_is_used_again(tmp_path: Path, clock: FakeClock) -> None:
    first = Authority.load(tmp_path / "pki", clock=clock)
    server, admin = first.server("api", hosts=("10.0.0.1", "::1", "localhost")), first.client("admin", user="admin")
    before = [serial(server), serial(admin)]
    again = Authority.load(tmp_path / "pki", clock=clock)
    assert again.certificate == first.certificate
    assert [
        serial(again.server("api", hosts=("10.0.0.1", "::1", "localhost"))),
        serial(again.client("admin", user="admin")),
    ] == before
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "pki").iterdir()} == {0o600}


def test_what_was_checked_before_is_used_without_loading_a_library_for_it(tmp_path: Path) -> None:
    script = (
        "import ssl, sys; from pathlib import Path; from podfit.net.authority import Authority;"
        "from podfit.net.tls import server_context;"
        "from podfit.net.system import SystemClock; from podfit.net.client_certificates import Trust;"
        "from podfit.net.x509 import certificate_identity;"
        "authority = Authority.load(Path(sys.argv[1]), clock=SystemClock());"
        "server_context(authority.server('api', hosts=('a', '::1'))); admin = authority.client('admin', user='admin');"
        "der = ssl.PEM_cert_to_DER_cert(admin.certificate.decode());"
        "print('cryptography' in sys.modules, certificate_identity(der).user,"
        " repr(authority.certificate, known=authority.knows.objection(der)), 'cryptography' in sys.modules)"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    said = [subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() for _ in range(2)]
    assert said == [["True", "admin", "''", "True"], ["False", "admin", "''", "False"]]


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"api": 1}'])
def test_a_record_that_cannot_be_read_only_costs_a_check(tmp_path: Path, clock: FakeClock, damage: str) -> None:
    before = serial(Authority.load(tmp_path, clock=clock).server("api", hosts=("a",)))
    (tmp_path / "issued.json").write_text(damage)
    assert serial(Authority.load(tmp_path, clock=clock).server("api", hosts=("a",))) == before
    assert b'"digest"' in (tmp_path / "issued.json").read_bytes()


def test_only_clients_that_an_authority_handed_out_are_known(tmp_path: Path) -> None:
    def der(pair: KeyPair) -> bytes:
        return ssl.PEM_cert_to_DER_cert(pair.certificate.decode())

    authority, other = (Authority.load(tmp_path / name, clock=SystemClock()) for name in "ab")
    admin, server = authority.client("admin", user="admin"), authority.server("api", hosts=("a",))
    assert authority.knows(der(admin))
    assert not authority.knows(der(server))
    assert not authority.knows(der(other.client("admin", user="admin")))


def test_a_client_is_known_while_its_certificate_is_in_its_time(tmp_path: Path, clock: FakeClock) -> None:
    authority = Authority.load(tmp_path, clock=clock)
    der = ssl.PEM_cert_to_DER_cert(authority.client("admin", user="admin").certificate.decode())
    assert authority.knows(der)
    clock.jump((LEAF_LIFE + timedelta(days=1)).total_seconds())
    assert not authority.knows(der)


async def test_a_certificate_near_its_end_is_renewed(tmp_path: Path, clock: FakeClock) -> None:
    authority = Authority.load(tmp_path, clock=clock)
    before = serial(authority.client("a", user="a"))
    await clock.advance(timedelta(days=334).total_seconds())
    assert serial(authority.client("a", user="a")) == before
    await clock.advance(timedelta(days=2).total_seconds())
    assert serial(authority.client("a", user="a")) != before


async def test_a_new_authority_makes_new_certificates(tmp_path: Path, clock: FakeClock) -> None:
    old = Authority.load(tmp_path, clock=clock)
    before = serial(old.client("a", user="a"))
    await clock.advance(timedelta(days=3640).total_seconds())
    new = Authority.load(tmp_path, clock=clock)
    assert new.certificate != old.certificate
    assert serial(new.client("a", user="a")) != before


@pytest.mark.parametrize("damage", ["certificate", "key", "another's key", "other hosts"])
def test_what_cannot_be_used_is_issued_anew(tmp_path: Path, clock: FakeClock, damage: str) -> None:
    authority = Authority.load(tmp_path, clock=clock)
    pair = authority.server("api", hosts=("a", "b"))
    before = serial(pair)
    if damage == "certificate":
        pair.certificate_file.write_bytes(b"-----BEGIN")
    elif damage == "key":
        pair.key_file.write_bytes(b"")
    elif damage == "another's key":
        pair.key_file.write_bytes(authority.client("x", user="x").key)
    hosts = ("a", "c") if damage == "other hosts" else ("a", "b")
    assert serial(authority.server("api", hosts=hosts)) != before
    server_context(pair)


def test_a_client_certificate_names_user_and_groups(tmp_path: Path, clock: FakeClock) -> None:
    authority = Authority.load(tmp_path, clock=clock)
    admin, node = authority.client("a", user="admin", groups=("g1", "g2")), authority.client("b", user="system:node:n1")
    assert identity(admin) == Identity("admin", ("g1", "g2"), extra=credential(admin))
    assert identity(node) == Identity("system:node:n1", extra=credential(node))
    with pytest.raises(ValueError, match=r"certificate|cut off"):
        certificate_identity(b"nonsense")


TEXT = st.text(st.characters(min_codepoint=32, max_codepoint=0xD7FF), min_size=1, max_size=12)
KINDS = st.sampled_from([NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME, NameOID.LOCALITY_NAME])
CODINGS = st.sampled_from([_ASN1Type.UTF8String, _ASN1Type.BMPString, _ASN1Type.UniversalString])


@settings(max_examples=30)
@given(st.lists(st.tuples(KINDS, TEXT, CODINGS), max_size=5))
def test_whom_a_certificate_names_is_what_the_library_reads(
    names: list[tuple[ObjectIdentifier, str, _ASN1Type]],
) -> None:
    subject = x509.Name([x509.NameAttribute(oid, text, kind) for oid, text, kind in names])
    now = SystemClock().now()
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(x509.Name([]))
        .public_key(SOME_KEY.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + LEAF_LIFE)
        .sign(SOME_KEY, hashes.SHA256())
    )
    der = made.public_bytes(Encoding.DER)
    found, read = certificate_identity(der), x509.load_der_x509_certificate(der).subject
    users = [str(each.value) for each in read.get_attributes_for_oid(NameOID.COMMON_NAME)]
    groups = tuple(str(each.value) for each in read.get_attributes_for_oid(NameOID.ORGANIZATION_NAME))
    assert (found and (found.user, found.groups)) == ((users[0], groups) if users else None)


@given(st.data())
def test_a_certificate_with_a_flaw_names_somebody_or_is_refused(data: st.DataObject) -> None:
    flawed = bytearray(SOME_CERTIFICATE)
    for _ in range(data.draw(st.integers(1, 3))):
        flawed[data.draw(st.integers(0, len(flawed) - 1))] = data.draw(st.integers(0, 255))
    with suppress(ValueError):
        certificate_identity(bytes(flawed[: data.draw(st.integers(0, len(flawed)))]))


def test_a_client_context_shows_a_certificate_without_leaving_its_key(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority.load(tmp_path / "pki", clock=clock)
    pair = authority.client("a", user="a")
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    client_context(authorities=authority.certificate, certificate=pair.certificate, key=pair.key)
    assert list((tmp_path / "tmp").iterdir()) == []
    with pytest.raises(ssl.SSLError):
        client_context(authorities=b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
