"""`podfit dns` alone, beside an API server: it answers by UDP and TCP, tells its health, and goes on without it."""

import re
from collections.abc import Iterator
from pathlib import Path

import dns.message
import dns.query
import pytest

from e2e.test_control_processes import Part, _ask
from podfit.client.kubeconfig import load
from podfit.net.tls import client_context
from support.apiserver_processes import ApiProcess
from support.eventually import PATIENCE, eventually
from support.up import PODFIT, Up, run

pytestmark = pytest.mark.kubectl


@pytest.fixture
def api(tmp_path: Path) -> Iterator[ApiProcess]:
    made = ApiProcess(tmp_path / "api", "admin")
    made.start()
    made.await_ready()
    yield made
    made.stop()


def asked(port: int, name: str, *, tcp: bool = False) -> set[str]:
    query = dns.message.make_query(name, "A")
    reply = (dns.query.tcp if tcp else dns.query.udp)(query, "127.0.0.1", port=port, timeout=5 * PATIENCE)
    return {str(rdata) for rrset in reply.answer for rdata in rrset}


def test_it_answers_beside_an_api_server_and_while_that_is_away(api: ApiProcess, tmp_path: Path) -> None:
    up = Up(api.data)
    part = Part(api, tmp_path / "dns.log", "dns", "--dns-port", "0", "--cluster-domain", "c.example")
    try:
        server = part.said("  serves ").split()[1]
        where = re.fullmatch(r"  dns       c.example, at 127.0.0.1 port (\d+)", part.said("  dns ").rstrip())
        assert where
        port = int(where[1])
        for tcp in (False, True):
            assert asked(port, "kubernetes.default.svc.c.example", tcp=tcp) == {"10.96.0.1"}
        ports = [{"port": 80}]
        web = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": ports}}
        up.apply(web)
        address = up.get("service", "web")["spec"]["clusterIP"]
        name = "web.default.svc.c.example"
        eventually(lambda: asked(port, name), lambda values: values == {address}, within=10, what="the new name")

        access = load([api.data / "admin.kubeconfig"])
        admin = client_context(certificate=access.certificate, key=access.key, verify=False)
        nobody = client_context(verify=False)
        assert [_ask(f"{server}/{page}", nobody) for page in ("health", "ready", "healthz")] == [200] * 3
        assert (_ask(f"{server}/metrics", nobody), _ask(f"{server}/metrics", admin)) == (401, 200)

        api.stop()
        assert asked(port, name) == {address}
        api.start()
        api.await_ready()
        up.ok("delete", "service/web")
        eventually(lambda: asked(port, name), lambda values: values == set(), within=40, what="the name is gone")
    finally:
        assert part.end() == 0


def test_a_port_that_is_taken_is_said_in_one_line(api: ApiProcess, tmp_path: Path) -> None:
    first = Part(api, tmp_path / "dns.log", "dns", "--dns-port", "0")
    try:
        port = first.said("  dns ").split()[-1]
        command = (PODFIT, "dns", "--data", str(api.data), "--secure-port", "0", "--dns-port", port)
        answer = run(*command)
        assert answer.code == 3
        assert f"no names at 127.0.0.1 port {port}: " in answer.err
        assert "Traceback" not in answer.err
    finally:
        first.end()


@pytest.mark.parametrize(
    "options",
    [("--dns-address", "here"), ("--dns-allow", "everybody"), ("--cluster-domain", "no domain"), ("--dns-port", "x")],
)
def test_options_that_cannot_be_followed_are_named(options: tuple[str, str]) -> None:
    answer = run(PODFIT, "dns", *options)
    assert answer.code == 2
    assert options[0] in answer.err
    assert "Traceback" not in answer.err
