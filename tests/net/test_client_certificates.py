"""A client certificate is optional; one that no authority vouches for fails the handshake."""

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
from podfit.net.http_server import HttpsServer
from podfit.net.system import SystemClock
from podfit.net.tls import KeyPair, client_context, server_context
from podfit.net.wire import Handler, Request, Response
from support.clock import FakeClock
from support.wire import HOST, Wire, get

Serving = Callable[[Handler], AbstractAsyncContextManager[int]]
Dial = Callable[..., Awaitable[Wire]]


async def told(request: Request) -> Response:
    return Response(200, {}, json.dumps(request.peer_certificate is not None).encode())


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
async def test_a_certificate_that_nobody_vouches_for_fails_the_handshake(
    case: str, version: ssl.TLSVersion, authority: Authority, serving: Serving, dial: Dial, tmp_path: Path
) -> None:
    """With TLS 1.3 the client hears of it when it reads."""
    pair = shown(case, authority, tmp_path)
    context = client_context(authorities=authority.certificate, certificate=pair.certificate, key=pair.key)
    context.maximum_version = version
    async with serving(told) as port:
        with pytest.raises((OSError, EOFError)):
            await asked(await dial(port, context))


async def asked(wire: Wire) -> bool:
    """Whether the server has verified the client's certificate."""
    await wire.send(get("/"))
    return bool(json.loads((await wire.answer())[2]))


async def test_who_shows_no_certificate_is_served(serving: Serving, dial: Dial) -> None:
    async with serving(told) as port:
        assert await asked(await dial(port)) is False


async def test_a_session_taken_up_again_has_its_certificate(authority: Authority, serving: Serving, dial: Dial) -> None:
    pair = authority.client("admin", user="admin")
    context = client_context(authorities=authority.certificate, certificate=pair.certificate, key=pair.key)
    async with serving(told) as port:
        for _ in range(2):
            assert await asked(await dial(port, context)) is True


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
    named = [x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)]) for common_name in (name, issuer)]
    begins, ends = now - timedelta(days=2), now + timedelta(days=days)
    builder = x509.CertificateBuilder(named[1], named[0], KEY.public_key(), x509.random_serial_number(), begins, ends)
    for extension_type in (*extensions, x509.AuthorityKeyIdentifier.from_issuer_public_key(KEY.public_key())):
        builder = builder.add_extension(extension_type, critical=isinstance(extension_type, x509.BasicConstraints))
    return builder.sign(key, hashes.SHA256())


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
async def test_a_chain_leads_to_an_authority_of_the_bundle(
    leaf: x509.Certificate,
    between: tuple[x509.Certificate, ...],
    good: bool,
    authority: Authority,
    server_pair: KeyPair,
    dial: Dial,
) -> None:
    """The bundle has several; only one has to do with it."""
    assert await verified(leaf, between, authority.certificate + pem(ROOT), authority, server_pair, dial) is good


async def test_an_authority_of_the_bundle_need_not_be_a_root(
    authority: Authority, server_pair: KeyPair, dial: Dial
) -> None:
    assert await verified(LEAF, (), pem(MIDDLE), authority, server_pair, dial)


async def verified(
    leaf: x509.Certificate,
    between: tuple[x509.Certificate, ...],
    clients: bytes,
    authority: Authority,
    server_pair: KeyPair,
    dial: Dial,
) -> bool:
    """Whether a server that believes `clients` serves who shows this chain."""
    server = HttpsServer(told, server_context(server_pair), clients=clients)
    port = await server.listen(HOST, 0)
    key = KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    chain = b"".join(map(pem, (leaf, *between)))
    try:
        context = client_context(authorities=authority.certificate, certificate=chain, key=key)
        return await asked(await dial(port, context))
    except (OSError, EOFError):
        return False
    finally:
        await server.close(deadline=1.0)


def pem(shown: x509.Certificate) -> bytes:
    return shown.public_bytes(Encoding.PEM)
