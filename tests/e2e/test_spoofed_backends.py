"""Webhooks and aggregated backends that answer what they should not, to a server in a process of its own.

What is told of each is in tests/apiserver/test_spoofed_backends.py and test_aggregation.py; here is what they cost.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.backends import own_address
from support.bounded import Figures, Victim, bounded
from support.spoofed import Answer, Send, spoofed
from support.spoofed_answers import ANSWERS, EXPECTED, GROUP, HOOKS, LISTED, hooks, registered, unregister, until, whole

Figure = Callable[[str, object], None]
MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    with bounded(tmp_path_factory.mktemp("spoofed") / "cluster") as victim:
        victim.ask("GET", "/api/v1/pods")  # what the first request loads stays
        yield victim


def tell(figure: Figure, figures: Figures) -> None:
    figure(
        figures.attack,
        f"turn {figures.turn_ms:.0f} ms, second client p99 {figures.p99_ms:.0f} ms, "
        f"grew {figures.peak_mib:.0f} MiB, kept {figures.kept_mib:.0f} MiB;",
    )
    figures.check()


def refused(victim: Victim, times: int) -> None:
    for _ in range(times):
        began = time.monotonic()
        answer = victim.ask("POST", MAPS, {"metadata": {"name": "a"}})
        assert answer.status == 500
        assert b"failed calling webhook" in answer.body
        assert time.monotonic() - began < 10


def webhooks(victim: Victim, directory: Path, figure: Figure, names: tuple[str, ...], times: int) -> None:
    try:
        with spoofed(directory, "127.0.0.1") as server:
            server.answers |= ANSWERS | {"first": ANSWERS["cut"]}
            hooks(victim, server, "first")
            tell(figure, victim.measure("webhook, the first call of a process", lambda: refused(victim, 1)))
            for name in names:
                hooks(victim, server, name)
                tell(figure, victim.measure(f"webhook, {name}", lambda: refused(victim, times)))
                asked = [head for head in server.heads if head.startswith(b"POST /%b?" % name.encode())]
                assert 1 <= len(asked) <= times  # on a busy machine the time of a call may be over before it is sent
    finally:
        victim.ask("DELETE", f"{HOOKS}/spoofed")


def test_webhooks(victim: Victim, tmp_path: Path, figure: Figure) -> None:
    webhooks(victim, tmp_path, figure, ("endless", "bomb", "headers", "interim"), 1)


@pytest.mark.campaign
@pytest.mark.timeout(900)
def test_webhooks_many_times(victim: Victim, tmp_path: Path, figure: Figure) -> None:
    """Webhooks that answer without an end, 100 MB, 200 MB in gzip, headers without an end, interim answers without an
    end, a byte every half second, nothing; a redirect to a link-local address, a protocol switch, status 999, two
    framings, garbage, half a body. Each is refused as a failed call, within its 2 s, and asked once.
    """
    webhooks(victim, tmp_path, figure, tuple(ANSWERS), 4)


@pytest.mark.campaign
@pytest.mark.timeout(900)
def test_aggregated_backends(victim: Victim, tmp_path: Path, figure: Figure) -> None:
    """An aggregated backend's list of what it serves is 100 MB, without an end, or cut; then it answers requests with
    redirects, protocol switches, headers and interim answers without an end, two framings, garbage, nothing. A client
    gets 502, 503 or 504, and headers of a client that say who it is are not passed on.
    """
    host = own_address()
    with spoofed(tmp_path, host, "s.default.svc") as server:
        for name in ("large", "endless", "bomb", "cut", "garbage"):
            server.default = ANSWERS[name]
            registered(victim, server, host)
            tell(figure, victim.measure(f"discovery, {name}", lambda: until(victim, "FailedDiscoveryCheck")))
            unregister(victim)
        server.default = None
        server.answers["apis"] = whole(LISTED)
        registered(victim, server, host)
        until(victim, "Passed")
        spoofing = {
            "X-Remote-User": "root",
            "X-Remote-Group": "system:masters",
            "X-Remote-Extra-A": "b",
            "Connection": "X-Secret",
            "X-Secret": "1",
            "TE": "trailers",
            "Proxy-Authorization": "a",
        }
        for name, status in EXPECTED.items():
            given = ANSWERS[name]
            before = len(server.heads)

            def answer(send: Send, given: Answer = given, head: list[bytes] = server.heads) -> None:
                (whole(LISTED) if head[-1].startswith(b"GET /apis/spoofed.example/v1 ") else given)(send)

            server.answers["apis"] = answer
            got: list[int] = []
            path = f"/apis/{GROUP}/v1/things/{name}"
            tell(
                figure,
                victim.measure(
                    f"backend, {name}",
                    lambda path=path, got=got: got.append(  # type: ignore[misc]  # bound in the loop
                        victim.ask("GET", path, headers=spoofing).status
                    ),
                ),
            )
            assert got == [status], name
            heads = [head.lower() for head in server.heads[before:] if b"/things/" in head]
            assert heads
            for head in heads:
                assert b"x-remote-user: root" not in head
                assert b"x-secret" not in head
                assert b"proxy-authorization" not in head
        unregister(victim)
