import hashlib
import ssl
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from cryptography.x509.oid import NameOID
from hypothesis import given
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


@pytest.mark.parametrize("attempt", range(5))
def test_of_many_at_once_one_issues_and_all_get_its_pair(tmp_path: Path, clock: FakeClock, attempt: int) -> None:
    Authority.load(tmp_path, clock=clock)

    def admin(_: int) -> KeyPair:
        return Authority.load(tmp_path, clock=clock).client("admin", user="kubernetes-admin")

    with ThreadPoolExecutor(8) as threads:
        pairs = list(threads.map(admin, range(8)))
    certificate = x509.load_pem_x509_certificate(pairs[0].certificate)
    key = load_pem_private_key(pairs[0].key, None)
    assert certificate.public_key() == key.public_key()
    assert len({pair.certificate for pair in pairs}) == 1


def test_a_client_certificate_names_user_and_groups(tmp_path: Path, clock: FakeClock) -> None:
    authority = Authority.load(tmp_path, clock=clock)
    admin, node = authority.client("a", user="admin", groups=("g1", "g2")), authority.client("b", user="system:node:n1")
    assert identity(admin) == Identity("admin", ("g1", "g2"), extra=credential(admin))
    assert identity(node) == Identity("system:node:n1", extra=credential(node))
    with pytest.raises(ValueError, match="asn1"):
        certificate_identity(b"nonsense")


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
