"""What containers are told of services: upstream's names, and for the API server its own address."""

import pytest

from podfit.api.core.v1.services.types import Service
from podfit.api.meta.codec import convert
from podfit.decide.pod.service_variables import of_api_server, of_services


@pytest.mark.parametrize(
    ("url", "host", "joined", "port"),
    [
        ("https://10.96.0.1:443", "10.96.0.1", "10.96.0.1:443", "443"),
        ("https://[fd00::1]:16443", "fd00::1", "[fd00::1]:16443", "16443"),
    ],
)
def test_the_variables_of_the_service_kubernetes(url: str, host: str, joined: str, port: str) -> None:
    assert of_api_server(url) == {
        "KUBERNETES_SERVICE_HOST": host,
        "KUBERNETES_SERVICE_PORT": port,
        "KUBERNETES_SERVICE_PORT_HTTPS": port,
        "KUBERNETES_PORT": f"tcp://{joined}",
        f"KUBERNETES_PORT_{port}_TCP": f"tcp://{joined}",
        f"KUBERNETES_PORT_{port}_TCP_PROTO": "tcp",
        f"KUBERNETES_PORT_{port}_TCP_PORT": port,
        f"KUBERNETES_PORT_{port}_TCP_ADDR": host,
    }


def test_nothing_is_said_of_no_server() -> None:
    assert of_api_server("") == {}


def service(name: str, namespace: str = "shop", **spec: object) -> Service:
    return convert({"metadata": {"name": name, "namespace": namespace}, "spec": spec}, Service)


def test_the_first_port_the_named_ones_and_a_link_for_each() -> None:
    ports = [{"port": 80, "name": "web-ui", "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]
    assert of_services([service("my-web", clusterIP="10.96.1.2", ports=ports)]) == {
        "MY_WEB_SERVICE_HOST": "10.96.1.2",
        "MY_WEB_SERVICE_PORT": "80",
        "MY_WEB_SERVICE_PORT_WEB_UI": "80",
        "MY_WEB_PORT": "tcp://10.96.1.2:80",
        "MY_WEB_PORT_80_TCP": "tcp://10.96.1.2:80",
        "MY_WEB_PORT_80_TCP_PROTO": "tcp",
        "MY_WEB_PORT_80_TCP_PORT": "80",
        "MY_WEB_PORT_80_TCP_ADDR": "10.96.1.2",
        "MY_WEB_PORT_53_UDP": "udp://10.96.1.2:53",
        "MY_WEB_PORT_53_UDP_PROTO": "udp",
        "MY_WEB_PORT_53_UDP_PORT": "53",
        "MY_WEB_PORT_53_UDP_ADDR": "10.96.1.2",
    }


@pytest.mark.parametrize(
    "untold",
    [
        service("headless", clusterIP="None", ports=[{"port": 80}]),
        service("elsewhere", type="ExternalName", externalName="example.com", ports=[{"port": 80}]),
        service("kubernetes", "default", clusterIP="10.96.0.1", ports=[{"port": 443}]),
    ],
    ids=lambda service: str(service.metadata.name),
)
def test_services_without_an_address_and_the_api_servers_own_are_not_told(untold: Service) -> None:
    assert of_services([untold]) == {}
