"""What several clusters of one machine share: ranges of addresses, and switches that are set back by the last one."""

from pathlib import Path

import pytest

from podfit.kubelet.network.machine import RangeTaken, SharedNetwork, interface_of, mtu, routes

ROUTES = """\
Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth0	00000000	010200C0	0003	0	0	0	00000000	0	0	0
vetha	0200F40A	00000000	0005	0	0	0	FFFFFFFF	0	0	0
eth0	000200C0	00000000	0001	0	0	0	00FFFFFF	0	0	0
"""
SWITCH = "sys/net/ipv4/ip_forward"


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    for file, text in {"net/route": ROUTES, SWITCH: "0\n"}.items():
        (tmp_path / "proc" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "proc" / file).write_text(text)
    return tmp_path / "proc"


def shared(proc: Path, tag: str) -> SharedNetwork:
    return SharedNetwork(tag, proc.parent / "run", proc)


def test_the_routes_of_the_machine(proc: Path) -> None:
    assert [(route.interface, str(route.network)) for route in routes(proc)] == [
        ("eth0", "0.0.0.0/0"),
        ("vetha", "10.244.0.2/32"),
        ("eth0", "192.0.2.0/24"),
    ]
    assert (interface_of("10.244.0.2", proc), interface_of("10.244.0.3", proc)) == ("vetha", "")


def test_packets_are_as_large_as_those_of_the_default_route(proc: Path, tmp_path: Path) -> None:
    (tmp_path / "eth0").mkdir()
    (tmp_path / "eth0/mtu").write_text("1400\n")
    assert (mtu(proc, tmp_path), mtu(proc, tmp_path / "other")) == (1400, 1500)


def test_clusters_have_ranges_of_their_own_and_what_is_routed_is_nobodys(proc: Path) -> None:
    one, other = shared(proc, "one"), shared(proc, "other")
    assert one.claim() == "10.245.0.0/16"  # a route leads to 10.244.0.2
    assert other.claim() == "10.246.0.0/16"
    with pytest.raises(RangeTaken, match=r"10\.246\.1\.0/24 meets 10\.246\.0\.0/16, which other"):
        one.claim("10.246.1.0/24")
    assert one.claim("10.245.0.0/24") == "10.245.0.0/24"
    assert one.claimed() == ("10.245.0.0/16", "10.245.0.0/24")
    other.release()
    assert one.claim("10.246.0.0/16") == "10.246.0.0/16"


def test_a_cluster_finds_its_range_again_with_its_pods_routed(proc: Path) -> None:
    one = shared(proc, "one")
    assert one.claim("10.244.0.0/16") == "10.244.0.0/16"
    assert one.claim() == "10.244.0.0/16"


def test_the_last_cluster_sets_the_switch_back(proc: Path) -> None:
    one, other = shared(proc, "one"), shared(proc, "other")
    assert one.forward()
    assert (proc / SWITCH).read_text() == "1"
    assert other.forward()  # it was off before any of them
    one.release()
    assert (proc / SWITCH).read_text() == "1"
    one.release()
    other.release()
    assert (proc / SWITCH).read_text() == "0"


@pytest.mark.parametrize(("before", "then"), [("1", "1"), ("0", "2")])
def test_what_was_on_before_or_somebody_else_has_changed_stays(proc: Path, before: str, then: str) -> None:
    (proc / SWITCH).write_text(before)
    one = shared(proc, "one")
    assert one.forward() is (before == "0")
    (proc / SWITCH).write_text(then)
    one.release()
    assert (proc / SWITCH).read_text() == then


def test_a_switch_that_somebody_turned_off_is_on_again_with_the_next_start(proc: Path) -> None:
    one = shared(proc, "one")
    one.forward()
    (proc / SWITCH).write_text("0")
    one.forward()
    assert (proc / SWITCH).read_text() == "1"


def test_a_damaged_record_is_begun_anew(proc: Path) -> None:
    one = shared(proc, "one")
    one.claim("10.250.0.0/16")
    (proc.parent / "run/ranges.json").write_text("{")
    assert one.claimed() == ()
    assert one.claim("10.250.0.0/16") == "10.250.0.0/16"
