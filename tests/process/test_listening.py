"""Where the API server listens, what it says of that, and which names its certificate has."""

import socket
from pathlib import Path
from typing import Literal

import pytest

from podfit.net import addresses
from podfit.net.http_client import HttpsClient
from podfit.net.reachability import Unreachable
from podfit.net.system import SystemClock
from podfit.net.tls import client_context
from podfit.net.wire import Request
from podfit.process.certificates import HOSTS
from podfit.process.config_file import read
from podfit.process.control.apiserver import ApiServerProcess
from podfit.process.data.data_dir import DataDir
from podfit.process.errors import MachineError, UsageError
from podfit.process.listening import Listening
from podfit.process.options import ApiServerOptions

SERVICE = "10.96.0.1"
WORLD = "198.51.100.7"


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podfit.process.listening.outward", lambda *, version: WORLD if version == 4 else "")
    monkeypatch.setattr("socket.gethostname", lambda: "Box.example")


@pytest.mark.parametrize(
    ("given", "listens", "told", "named"),
    [
        (Listening(), ("127.0.0.1",), "127.0.0.1", {SERVICE}),
        (Listening(bind=("10.0.0.5",)), ("127.0.0.1", "10.0.0.5"), "10.0.0.5", {SERVICE, "10.0.0.5", "box.example"}),
        (Listening(bind=("0.0.0.0",)), ("0.0.0.0",), WORLD, {SERVICE, WORLD, "box.example"}),
        (Listening(bind=("::",)), ("127.0.0.1", "::"), "::1", {SERVICE, "box.example"}),
        (Listening(bind=("FD00:0::5",)), ("127.0.0.1", "fd00::5"), "fd00::5", {SERVICE, "fd00::5", "box.example"}),
        (
            Listening(bind=("127.0.0.1", "10.0.0.5", "10.0.1.5", "10.0.0.5")),
            ("127.0.0.1", "10.0.0.5", "10.0.1.5"),
            "10.0.0.5",
            {SERVICE, "10.0.0.5", "10.0.1.5", "box.example"},
        ),
        (
            Listening(bind=("10.0.0.5", "0.0.0.0", "FD00:0::5")),
            ("0.0.0.0", "fd00::5"),
            WORLD,
            {SERVICE, WORLD, "fd00::5", "box.example"},
        ),
        (Listening(bind=("::1", "127.0.0.2")), ("127.0.0.1", "::1", "127.0.0.2"), "::1", {SERVICE, "127.0.0.2"}),
        (Listening(advertise="10.0.0.9"), ("127.0.0.1",), "10.0.0.9", {SERVICE, "10.0.0.9"}),
        (
            Listening(names=("api.example", "FD00:0::1")),
            ("127.0.0.1",),
            "127.0.0.1",
            {SERVICE, "api.example", "fd00::1"},
        ),
    ],
)
def test_addresses_and_names(given: Listening, listens: tuple[str, ...], told: str, named: set[str]) -> None:
    given.check()
    assert given.addresses == listens
    assert given.advertised == told
    assert set(given.hosts(SERVICE)) - set(HOSTS) == named


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (Listening(bind=("localhost",)), "--bind-address 'localhost' is not an IP address"),
        (Listening(bind=("10.0.0.5", "10.0.0")), "--bind-address '10.0.0' is not an IP address"),
        (Listening(advertise="example.com"), "--advertise-address 'example.com' is not an IP address"),
        (Listening(advertise="0.0.0.0"), "not an address that clients can reach"),
        (Listening(names=("no_name",)), "neither a DNS name nor an IP address"),
    ],
)
def test_what_is_no_address(wrong: Listening, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        wrong.check()
    with pytest.raises(UsageError, match=message):
        ApiServerOptions(data=DataDir(Path("/nowhere")), listening=wrong).check()


@pytest.mark.parametrize(
    ("addresses", "ports", "message"),
    [
        ("10.0.0.0/30", "1-2", "at least 8 IP addresses"),
        ("10.0.0.1/24", "1-2", "has host bits set"),
        ("10.0.0.0/16,fd00::/108", "1-2", "one range, of one family"),
        ("10.0.0.0/16", "2-1", "the lower one first"),
        ("10.0.0.0/16", "60000+6000", "from 1 to 65535"),
        ("10.0.0.0/16", "many", "not of the form"),
    ],
)
def test_what_is_no_range(addresses: str, ports: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read(ApiServerOptions, {"service-cluster-ip-range": addresses, "service-node-port-range": ports})


async def _version(server: str, authority: bytes) -> int:
    client = HttpsClient(server, client_context(authorities=authority), connect_timeout=5.0)
    try:
        return (await client.send(Request("GET", "/version"))).status
    finally:
        await client.close()


async def test_the_certificate_gets_the_names_and_is_made_anew_when_they_change(tmp_path: Path) -> None:
    """127.0.0.3 stands for another network's address: the machine has it, and no certificate names it by itself."""
    data = DataDir.at(tmp_path)

    async def start(**given: object) -> ApiServerProcess:
        options = ApiServerOptions(data=data, port=0, listening=Listening(bind=("0.0.0.0",), **given))  # type: ignore[arg-type]  # keywords of several types
        return await ApiServerProcess.start(options, announce=lambda _: None, clock=SystemClock())

    certificate = data.pki / "apiserver-0.0.0.0.crt"
    process = await start()
    port = process.server.rpartition(":")[2]
    authority = (data.pki / "ca.crt").read_bytes()
    first = certificate.read_bytes()
    assert await _version(process.server, authority) == 200
    with pytest.raises(Unreachable, match=r"not valid for '127\.0\.0\.3'"):
        await _version(f"https://127.0.0.3:{port}", authority)
    await process.stop()

    process = await start(names=("127.0.0.3",))
    assert certificate.read_bytes() != first
    assert await _version(f"https://127.0.0.3:{process.server.rpartition(':')[2]}", authority) == 200
    await process.stop()
    second = certificate.read_bytes()
    await (await start(names=("127.0.0.3",))).stop()
    assert certificate.read_bytes() == second


async def test_a_server_listens_on_each_address_and_on_no_other(tmp_path: Path) -> None:
    data, given = DataDir.at(tmp_path), read(Listening, {"bind-address": ("127.0.0.2,127.0.0.3",)})
    process = await ApiServerProcess.start(
        ApiServerOptions(data=data, port=0, listening=given), announce=lambda _: None, clock=SystemClock()
    )
    authority, port = (data.pki / "ca.crt").read_bytes(), process.server.rpartition(":")[2]
    assert [await _version(f"https://{host}:{port}", authority) for host in ("127.0.0.2", "127.0.0.3")] == [200, 200]
    with pytest.raises(Unreachable):
        await _version(f"https://127.0.0.1:{port}", authority)
    await process.stop()


async def test_an_address_that_is_not_this_machines(tmp_path: Path) -> None:
    options = ApiServerOptions(data=DataDir.at(tmp_path), port=0, listening=Listening(bind=("203.0.113.9",)))
    with pytest.raises(MachineError, match=r"cannot listen on 203\.0\.113\.9"):
        await ApiServerProcess.start(options, announce=lambda _: None, clock=SystemClock())


@pytest.mark.parametrize("version", [4, 6])
def test_the_own_address_is_one_of_this_machine(version: Literal[4, 6]) -> None:
    if not (found := addresses.outward(version=version)):
        pytest.skip(f"no way to the world over IPv{version}")
    family = socket.AF_INET if version == 4 else socket.AF_INET6
    with socket.socket(family, socket.SOCK_DGRAM) as own:
        own.bind((found, 0))  # refused for what is not ours
