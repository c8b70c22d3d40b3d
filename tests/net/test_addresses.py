"""The address that a machine tells as its own, and how soon a machine that is cut off is noticed."""

import logging
import socket
import ssl
from pathlib import Path

import pytest

from podfit.net import addresses
from podfit.net.http_client import HttpsClient
from podfit.process.data.data_dir import DataDir
from podfit.process.node.kubelet_config import kubelet_config
from podfit.process.options import ApiServerOptions, UpOptions


def told(monkeypatch: pytest.MonkeyPatch, *, v4: str = "", v6: str = "", interfaces: tuple[str, ...] = ()) -> str:
    monkeypatch.setattr(addresses, "outward", lambda *, version: v4 if version == 4 else v6)
    monkeypatch.setattr(addresses, "interface_addresses", lambda: interfaces)
    return addresses.own_address()


def test_the_default_routes_address_comes_first_and_loopback_never(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(monkeypatch, v4="192.0.2.2", v6="fd00::2", interfaces=("10.0.0.1",)) == "192.0.2.2"
    assert told(monkeypatch, v4="127.0.0.1", v6="fd00::2", interfaces=("10.0.0.1",)) == "10.0.0.1"
    assert told(monkeypatch, v6="fd00::2") == "fd00::2"
    assert told(monkeypatch, v4="127.0.0.1", v6="::1") == ""


def test_interfaces_tell_no_loopback() -> None:
    assert not any(address.startswith("127.") for address in addresses.interface_addresses())


def test_a_machine_with_nothing_but_loopback_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told(monkeypatch)
    with caplog.at_level(logging.WARNING):
        config = kubelet_config("n1", UpOptions(api=ApiServerOptions(data=DataDir.at(tmp_path))), simulated=True)
    assert config.host_ip == "127.0.0.1"
    assert "no address but loopback" in caplog.text


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://127.0.0.1:6443", True),
        ("https://[::1]:6443", True),
        ("https://localhost:6443", True),
        ("https://192.0.2.1:6443", False),
        ("https://api.example.com", False),
    ],
)
def test_which_servers_only_this_machine_reaches(url: str, expected: bool) -> None:
    assert addresses.is_loopback_url(url) is expected


def test_a_machine_that_is_cut_off_is_noticed_by_the_kernel() -> None:
    client = HttpsClient("https://192.0.2.1", ssl.create_default_context(), dead_after=10.0)
    with client._new_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("192.0.2.1", 443))) as made:
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert made.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 5
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            assert made.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 10_000
