"""Service environment variables of containers (`NAME_SERVICE_HOST`, …).

The names are those of Docker's links, which client libraries read to find the API server they run under.
"""

from collections.abc import Iterable, Mapping

from podfit.api.core.v1.services.types import Service, ServicePort

_KUBERNETES = "default", "kubernetes"


def of_api_server(url: str) -> Mapping[str, str]:
    """The variables of the service `kubernetes` for a server at `https://ADDRESS:PORT`; none for an empty text.

    They name the server's own address and port where upstream's name the service's: nothing on a node leads from the
    address of a service to who answers for it.
    """
    host, _, port = url.removeprefix("https://").rpartition(":")
    host = host.strip("[]")
    return of_service("kubernetes", host, (ServicePort(name="https", port=int(port)),)) if host else {}


def of_services(services: Iterable[Service]) -> Mapping[str, str]:
    """The variables of services that have an address. The service `kubernetes` is told by `of_api_server`."""
    variables: dict[str, str] = {}
    for service in services:
        meta, spec = service.metadata, service.spec
        if spec.cluster_ip not in ("", "None") and (meta.namespace, meta.name) != _KUBERNETES:
            variables |= of_service(meta.name, spec.cluster_ip, spec.ports)
    return variables


def of_service(name: str, host: str, ports: Iterable[ServicePort]) -> Mapping[str, str]:
    """The address, the first port, each port that has a name, and each port as a link."""
    prefix = _variable(name)
    variables: dict[str, str] = {}
    for number, port in enumerate(ports):
        protocol = (port.protocol or "TCP").lower()
        whole = f"{protocol}://[{host}]:{port.port}" if ":" in host else f"{protocol}://{host}:{port.port}"
        link = f"{prefix}_PORT_{port.port}_{protocol.upper()}"
        if number == 0:
            variables |= {
                f"{prefix}_SERVICE_HOST": host,
                f"{prefix}_SERVICE_PORT": str(port.port),
                f"{prefix}_PORT": whole,
            }
        if port.name:
            variables[f"{prefix}_SERVICE_PORT_{_variable(port.name)}"] = str(port.port)
        variables |= {link: whole, f"{link}_PROTO": protocol, f"{link}_PORT": str(port.port), f"{link}_ADDR": host}
    return variables


def _variable(name: str) -> str:
    return name.upper().replace("-", "_")
