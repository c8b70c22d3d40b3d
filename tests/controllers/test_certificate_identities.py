"""Who a certificate makes of its bearer: exactly who asked for it, read by the server that later lets them in."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from ipaddress import ip_address
from pathlib import Path
from random import Random
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from podfit.api.certificates.v1.types import APPROVED, FAILED, CertificateSigningRequest, CertificateSigningRequestSpec
from podfit.api.core.v1.nodes.types import Node
from podfit.api.meta.v1.types import ObjectMeta
from podfit.client.rest import STRATEGIC_PATCH
from podfit.core.errors import ApiError
from podfit.decide.certificates import CLIENT, NODE_CLIENT, NODE_SERVING, is_undecided, with_condition
from podfit.net.authority import Authority
from podfit.net.certificate_signing import read
from podfit.net.http_client import HttpsClient
from podfit.net.http_server import HttpsServer
from podfit.net.system import SystemClock
from podfit.net.tls import client_context, server_context
from podfit.net.wire import Identity, Request
from support.certificate_requests import (
    CN,
    EXTENSIONS,
    ORG,
    Asked,
    address,
    alternatives,
    attribute,
    dns,
    extension,
    key_pem,
    plain,
    random_request,
    tlv,
)
from support.clock import FakeClock
from support.joining import bootstrapping, cluster, register
from support.server import Server
from support.wire import HOST

pytestmark = pytest.mark.filterwarnings("ignore:Attribute's length must be")
N9 = Identity("system:node:n9", ("system:nodes",))
USES = {
    CLIENT: ("digital signature", "client auth"),
    NODE_CLIENT: ("digital signature", "client auth"),
    NODE_SERVING: ("digital signature", "server auth"),
}
Present = Callable[[bytes], Awaitable[tuple[str, tuple[str, ...]] | None]]


@asynccontextmanager
async def presenting(server: Server, directory: Path) -> AsyncIterator[Present]:
    """Shows a certificate to the server over TLS: who it then says one is; None where it does not let one in."""
    authority = Authority.load(directory, clock=SystemClock())
    tls = server_context(authority.server("server", hosts=(HOST, "api.example.com")))
    listening = HttpsServer(server.api.handler, tls, clients=authority.certificate)
    port = await listening.listen(HOST, 0)

    async def present(certificate: bytes) -> tuple[str, tuple[str, ...]] | None:
        shown = client_context(authorities=authority.certificate, certificate=certificate, key=key_pem())
        client = HttpsClient(f"https://{HOST}:{port}", shown)
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        try:
            answer = await client.send(Request("POST", path, body=b"{}"))
            document = json.loads(await answer.read())
        except OSError:
            return None
        finally:
            await client.close()
        if answer.status != 201:
            return None
        user = document["status"]["userInfo"]
        return user["username"], tuple(user["groups"])

    try:
        yield present
    finally:
        await listening.close(deadline=1.0)


async def outcome(
    server: Server, clock: FakeClock, who: Identity, asked: Asked, signer: str, *, approved: bool = False
) -> CertificateSigningRequest:
    """What becomes of a request, by itself or once a person approves it. Raises ApiError where it is not even taken."""
    spec = CertificateSigningRequestSpec(request=asked.pem(), signer_name=signer, usages=USES[signer])
    made = await server.as_identity(who).create(
        CertificateSigningRequest(metadata=ObjectMeta(generate_name="csr-"), spec=spec)
    )
    await clock.settle()
    found = await server.client.get(CertificateSigningRequest, made.metadata.name)
    if approved and is_undecided(found):
        await server.client.update(with_condition(found, APPROVED, "ByHand", "a person"), subresource="approval")
        await clock.settle()
        found = await server.client.get(CertificateSigningRequest, made.metadata.name)
    return found


def failure(request: CertificateSigningRequest) -> str:
    assert not request.status.certificate
    return next(condition.message for condition in request.status.conditions if condition.type == FAILED)


TWO = Asked([[(ORG, 12, "system:nodes")], [(CN, 12, "system:kube-controller-manager")], [(CN, 12, "system:node:n9")]])


@pytest.mark.parametrize("approved", [False, True])
async def test_a_request_with_two_common_names_is_nobody(tmp_path: Path, approved: bool) -> None:
    """From a bootstrap token, which may become a node of any name, to the rights of kube-controller-manager."""
    clock = FakeClock(SystemClock().now())
    async with cluster(tmp_path, clock) as server, presenting(server, tmp_path / "pki") as present:
        joining = await bootstrapping(server, clock)
        found = await outcome(server, clock, joining, TWO, NODE_CLIENT, approved=approved)
        assert failure(found) == "it cannot be read: the subject has 2 common names"
        with pytest.raises(ApiError, match=r"can only create a node CSR with CN=system:node:n9"):
            await outcome(server, clock, N9, TWO, NODE_CLIENT)
        right = await outcome(server, clock, joining, plain("system:node:n9"), NODE_CLIENT)
        assert await present(right.status.certificate) == ("system:node:n9", ("system:nodes", "system:authenticated"))


NINE = "system:node:n9"
PARTS: dict[str, tuple[Asked, str]] = {
    "an empty name": (plain(""), "the subject has no common name"),
    "no name": (Asked([[(ORG, 12, "system:nodes")]]), "the subject has no common name"),
    "an attribute of the subject": (
        Asked([*plain(NINE).names, [("2.5.4.11", 12, "x")]]),
        "the subject has attributes that are not read: 2.5.4.11",
    ),
    "several in one relative name": (
        Asked([[(ORG, 12, "system:nodes"), (CN, 12, NINE)]]),
        "the subject has several attributes in one relative name",
    ),
    "an authority": (
        Asked(plain(NINE).names, extensions=[extension("2.5.29.19", tlv(0x30, tlv(1, b"\xff")))]),
        "the request has an extension that is not read: 2.5.29.19",
    ),
    "another extension": (
        Asked(plain(NINE).names, extensions=[extension("1.2.3.4", b"\x05\x00")]),
        "the request has an extension that is not read: 1.2.3.4",
    ),
    "extensions twice": (
        Asked(
            plain(NINE).names,
            attributes=[attribute(EXTENSIONS, tlv(0x30, alternatives(dns(name)))) for name in ("n9", "kubernetes")],
        ),
        f"the request has an attribute that is not read: {EXTENSIONS}",
    ),
    "a password": (
        Asked(plain(NINE).names, attributes=[attribute("1.2.840.113549.1.9.7", tlv(12, b"x"))]),
        "the request has an attribute that is not read: 1.2.840.113549.1.9.7",
    ),
    "a name of another kind": (
        Asked(plain(NINE).names, extensions=[alternatives(tlv(0x88, b"\x2a\x03"))]),
        "a subjectAltName is not read: RegisteredID",
    ),
    "a network": (
        Asked(plain(NINE).names, extensions=[alternatives(tlv(0x87, bytes(8)))]),
        "a subjectAltName is not read: IPAddress",
    ),
    "a name that ends a line": (plain(f"{NINE}\n"), "cannot be printed"),
}


@pytest.mark.parametrize("part", PARTS)
async def test_what_is_not_read_is_not_signed(tmp_path: Path, part: str) -> None:
    """Not by any signer of the cluster, whoever approves it; the request says why."""
    clock = FakeClock(SystemClock().now())
    asked, why = PARTS[part]
    async with cluster(tmp_path, clock) as server:
        for signer in USES:
            admin = Identity("kubernetes-admin", ("system:masters",))
            assert why in failure(await outcome(server, clock, admin, asked, signer, approved=True))


async def test_two_requests_in_one_are_not_signed(tmp_path: Path) -> None:
    first, second = plain("system:node:n9").pem(), plain("kubernetes-admin").pem()
    assert read(first).unread == ""
    assert read(first + second).unread == "there is more than one PEM block"


async def test_a_certificate_with_two_common_names_lets_nobody_in(tmp_path: Path) -> None:
    """Whoever signed it: other servers take the first or the last."""
    authority = Authority.load(tmp_path / "pki", clock=SystemClock())
    certificate, key = authority._signer
    request = x509.load_pem_x509_csr(TWO.pem())
    now = SystemClock().now()
    made = (
        x509.CertificateBuilder(
            certificate.subject, request.subject, request.public_key(), 7, now, now.replace(year=2099)
        )
        .add_extension(x509.ExtendedKeyUsage([x509.ObjectIdentifier("1.3.6.1.5.5.7.3.2")]), critical=False)
        .sign(key, x509.load_pem_x509_csr(TWO.pem()).signature_hash_algorithm)  # type: ignore[arg-type]
    )

    async with cluster(tmp_path, FakeClock(now)) as server, presenting(server, tmp_path / "pki") as present:
        assert await present(made.public_bytes(Encoding.PEM)) is None


@pytest.mark.parametrize("port", [10250, 0])
@pytest.mark.parametrize("kind", ["InternalDNS", "Hostname", "InternalIP"])
async def test_no_node_gets_a_certificate_for_the_api_server(tmp_path: Path, kind: str, port: int) -> None:
    """Whatever its Node tells: names of `--tls-san`, the advertised address, those of services, and anybody's."""
    clock = FakeClock(SystemClock().now())
    cases: dict[str, bytes] = {"10.77.0.1": address("0a4d0001"), "192.0.2.1": address("c0000201")}
    if kind != "InternalIP":
        cases = {name: dns(name) for name in ("api.example.com", "www.bank.example", "kubernetes", "web.default.svc")}
    async with cluster(tmp_path, clock) as server:
        Authority.load(tmp_path / "pki", clock=clock).server("apiserver", hosts=("api.example.com", "10.77.0.1"))
        own = server.as_identity(N9)
        await register(own, "n9", "10.0.0.9", port=port)
        for name, part in cases.items():
            status = {"addresses": [{"type": kind, "address": name}, {"type": "InternalIP", "address": "10.0.0.9"}]}
            await own.patch(Node, "n9", "", {"status": status}, content_type=STRATEGIC_PATCH, subresource="status")
            asked = Asked(plain(NINE).names, extensions=[alternatives(part)])
            assert is_undecided(await outcome(server, clock, N9, asked, NODE_SERVING)), name
        right = Asked(plain(NINE).names, extensions=[alternatives(dns("n9"), address("0a000009"))])
        assert (await outcome(server, clock, N9, right, NODE_SERVING)).status.certificate


async def test_while_the_api_server_does_not_tell_its_names_nothing_is_approved(tmp_path: Path) -> None:
    clock, told = FakeClock(SystemClock().now()), asyncio.Event()
    asked = Asked(plain(NINE).names, extensions=[alternatives(dns("n9"), address("0a000009"))])
    async with cluster(tmp_path, clock, told=told) as server:
        await register(server.as_identity(N9), "n9", "10.0.0.9")
        waiting = await outcome(server, clock, N9, asked, NODE_SERVING)
        assert is_undecided(waiting)
        told.set()
        await clock.advance(60)
        assert (await server.client.get(CertificateSigningRequest, waiting.metadata.name)).status.certificate


async def _course(tmp_path: Path, seed: int, count: int) -> Counter[str]:
    """Requests at random, by whom they may come from; each certificate is shown to the server."""
    told: Counter[str] = Counter()
    random, clock = Random(seed), FakeClock(SystemClock().now())
    async with cluster(tmp_path, clock) as server, presenting(server, tmp_path / "pki") as present:
        await register(server.as_identity(N9), "n9", "10.0.0.9")
        await register(server.as_identity(Identity("system:node:n1", ("system:nodes",))), "n1", "10.0.0.1")
        joining = await bootstrapping(server, clock)
        for _ in range(count):
            asked, signer = random_request(random), random.choice(tuple(USES))
            who, approved = random.choice((N9, joining)), random.random() < 0.3
            try:
                found = await outcome(server, clock, who, asked, signer, approved=approved)
            except ApiError as error:
                told[f"answered {error.code}"] += 1
                continue
            if not found.status.certificate:
                told["failed" if found.has(FAILED) else "waiting"] += 1
                continue
            told["signed"] += 1
            _check_names(found, asked, approved=approved)
            shown = await present(found.status.certificate)
            if signer == NODE_SERVING:
                assert shown is None, "a server's certificate is nobody's"
                continue
            assert shown is not None
            (user,) = asked.texts(CN)
            assert shown == (user, (*asked.texts(ORG), "system:authenticated"))
            if not approved:
                assert user.startswith("system:node:")
                assert asked.texts(ORG) == ["system:nodes"]
                assert who is joining or user == who.user
    assert {kind for kind in told if kind.startswith("answered")} <= {"answered 403", "answered 422"}
    return told


def _check_names(request: CertificateSigningRequest, asked: Asked, *, approved: bool) -> None:
    """Nothing is in a certificate that was not asked for, and for a server, without a person, only what is its own."""
    certificate = x509.load_pem_x509_certificate(request.status.certificate)
    subject = [(part.oid.dotted_string, part.value) for part in certificate.subject]
    assert subject == [*((ORG, group) for group in asked.texts(ORG)), (CN, asked.texts(CN)[0])]
    known = {extension.oid.dotted_string for extension in certificate.extensions}
    assert known <= {"2.5.29.19", "2.5.29.35", "2.5.29.15", "2.5.29.37", "2.5.29.17"}
    try:
        names: list[Any] = list(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        names = []
    if request.spec.signer_name == NODE_SERVING and not approved:
        own = {"n9", "N9", ip_address("10.0.0.9"), ip_address("::ffff:10.0.0.9")}
        assert {name.value for name in names} <= own


async def test_a_certificate_is_exactly_who_asked(tmp_path: Path) -> None:
    told = await _course(tmp_path, 24, 120)
    assert told["signed"] >= 10
    assert told["failed"] >= 20
    assert told["answered 403"] >= 5


@pytest.mark.campaign
@pytest.mark.timeout(1800)
async def test_a_certificate_is_exactly_who_asked_many_times(
    tmp_path: Path, figure: Callable[[str, object], None]
) -> None:
    """10,000 requests for certificates, put together at random: several names, odd strings and orders, attributes,
    extensions, alternative names. What is approved and signed, shown to the server over TLS, is exactly who asked."""
    told: Counter[str] = Counter()
    for seed in range(10):
        told += await _course(tmp_path / str(seed), seed, 1000)
    for kind, number in sorted(told.items()):
        figure(kind, number)
