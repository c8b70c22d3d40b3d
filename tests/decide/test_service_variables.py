"""What containers are told of the API server: upstream's names, with the server's own address."""

import pytest

from podfit.decide.pod.service_variables import of_api_server


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
