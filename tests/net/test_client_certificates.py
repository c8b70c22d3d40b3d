"""Whoever shows a certificate gets an answer; only those an authority vouches for get a name."""

import json
import ssl
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from podfit.net.authority import Authority
from podfit.net.certificates import LEAF_LIFE
from podfit.net.client_certificates import Trust
from podfit.net.http_server import HttpsServer
from podfit.net.system import SystemClock
from podfit.net.tls import KeyPair, client_context, server_context
from podfit.net.wire import Handler, Request, Response
from support.clock import FakeClock
from support.wire import HOST, Wire, get

Serving = Callable[[Handler], AbstractAsyncContextManager[int]]
Dial = Callable[..., Awaitable[Wire]]


async def told(request: Request) -> Response:
    return Response(200, {}, json.dumps([request.peer_certificate is not None, request.untrusted]).encode())


def long_ago(directory: Path) -> Authority:
    return Authority.load(directory, clock=FakeClock(SystemClock().now() - LEAF_LIFE - timedelta(days=1)))


def shown(case: str, authority: Authority, elsewhere: Path) -> KeyPair:
    if case == "of another authority":
        return Authority.load(elsewhere, clock=SystemClock()).client("x", user="x")
    if case == "of another authority by the same name":
        return Authority.load(elsewhere, clock=SystemClock()).client("x", user="admin", groups=("system:masters",))
    if case == "expired":
        return long_ago(authority.directory).client("old", user="x")
    return authority.server("of a server", hosts=("127.0.0.1",))


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize(
    "case", ["of another authority", "of another authority by the same name", "expired", "of a server"]
)
async def test_a_certificate_that_nobody_vouches_for_is_told_to_the_handler(
    case: str, version: ssl.TLSVersion, authority: Authority, serving: Serving, dial: Dial, tmp_path: Path
) -> None:
    pair = shown(case, authority, tmp_path)
    context = client_context(authorities=authority.certificate, certificate=pair.certificate, key=pair.key)
    context.maximum_version = version
    async with serving(told) as port:
        wire = await dial(port, context)
        for _ in range(2):
            await wire.send(get("/"))
            verified, untrusted = json.loads((await wire.answer())[2])
            assert not verified
            assert untrusted


async def test_a_session_taken_up_again_is_judged_again(authority: Authority, serving: Serving, dial: Dial) -> None:
    pair = authority.client("admin", user="admin")
    context = client_context(authorities=authority.certificate, certificate=pair.certificate, key=pair.key)
    async with serving(told) as port:
        for _ in range(2):
            wire = await dial(port, context)
            await wire.send(get("/"))
            assert json.loads((await wire.answer())[2]) == [True, ""]


Extensions = list[x509.ExtensionType]
KEY = ec.generate_private_key(ec.SECP256R1())
ISSUES: Extensions = [x509.BasicConstraints(ca=True, path_length=None)]
NO_SIGNER = x509.KeyUsage(
    digital_signature=True,
    key_cert_sign=False,
    crl_sign=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)


def certificate(
    name: str, issuer: str, extensions: Extensions, *, days: int = 1, key: ec.EllipticCurvePrivateKey = KEY
) -> x509.Certificate:
    now = SystemClock().now()
    named = [x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, each)]) for each in (name, issuer)]
    begins, ends = now - timedelta(days=2), now + timedelta(days=days)
    builder = x509.CertificateBuilder(named[1], named[0], KEY.public_key(), x509.random_serial_number(), begins, ends)
    for each in (*extensions, x509.AuthorityKeyIdentifier.from_issuer_public_key(KEY.public_key())):
        builder = builder.add_extension(each, critical=isinstance(each, x509.BasicConstraints))
    return builder.sign(key, hashes.SHA256())


def der(found: x509.Certificate) -> bytes:
    return found.public_bytes(Encoding.DER)


ROOT = certificate("root", "root", ISSUES)
MIDDLE = certificate("middle", "root", ISSUES)
LEAF = certificate("jane", "middle", [])
CLIENT = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])


@pytest.mark.parametrize(
    ("leaf", "between", "good"),
    [
        (LEAF, (MIDDLE,), True),
        (certificate("jane", "middle", [CLIENT]), (MIDDLE,), True),
        (certificate("jane", "lower", []), (certificate("lower", "middle", ISSUES), MIDDLE), True),
        (LEAF, (), False),
        (LEAF, (certificate("middle", "root", []),), False),
        (LEAF, (certificate("middle", "root", [x509.BasicConstraints(ca=False, path_length=None)]),), False),
        (LEAF, (certificate("middle", "root", [*ISSUES, NO_SIGNER]),), False),
        (LEAF, (certificate("middle", "root", ISSUES, days=-1),), False),
        (LEAF, (certificate("middle", "root", ISSUES, key=ec.generate_private_key(ec.SECP256R1())),), False),
        (certificate("jane", "middle", [], days=-1), (MIDDLE,), False),
        (certificate("jane", "middle", [x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])]), (MIDDLE,), False),
    ],
)
def test_authorities_between_are_authorities_themselves(
    leaf: x509.Certificate, between: tuple[x509.Certificate, ...], good: bool, authority: Authority
) -> None:
    """The bundle has several; only one has to do with it."""
    trust = Trust(authority.certificate + ROOT.public_bytes(Encoding.PEM))
    assert bool(trust.objection(der(leaf), tuple(map(der, between)))) is not good
    assert bool(trust.objection(der(leaf))) is not good  # as a session that is taken up again shows it


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_chain_that_the_client_sends_leads_to_the_root(
    version: ssl.TLSVersion, authority: Authority, server_pair: KeyPair, dial: Dial
) -> None:
    pem = LEAF.public_bytes(Encoding.PEM)
    key = KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    server = HttpsServer(told, server_context(server_pair), clients=Trust(ROOT.public_bytes(Encoding.PEM)))
    port = await server.listen(HOST, 0)
    for chain, expected in ((pem + MIDDLE.public_bytes(Encoding.PEM), True), (pem, True)):
        context = client_context(authorities=authority.certificate, certificate=chain, key=key)
        context.maximum_version = version
        wire = await dial(port, context)
        await wire.send(get("/"))
        assert json.loads((await wire.answer())[2])[0] is expected
    await server.close(deadline=1.0)


def test_what_is_no_certificate_is_no_good(authority: Authority) -> None:
    assert Trust(authority.certificate).objection(b"nothing of the kind")
