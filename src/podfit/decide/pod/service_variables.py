"""What a container's environment says of a service: the variables by which programs find it without asking anyone.

The names are those of Docker's links, which client libraries read to find the API server they run under.
"""

from collections.abc import Mapping


def of_api_server(url: str) -> Mapping[str, str]:
    """The variables of the service `kubernetes` for a server at `https://ADDRESS:PORT`; none for an empty text.

    They name the server's own address and port where upstream's name the service's: nothing on a node leads from the
    address of a service to who answers for it.
    """
    host, _, port = url.removeprefix("https://").rpartition(":")
    host = host.strip("[]")
    if not host:
        return {}
    whole = f"tcp://[{host}]:{port}" if ":" in host else f"tcp://{host}:{port}"
    link = f"KUBERNETES_PORT_{port}_TCP"
    return {
        "KUBERNETES_SERVICE_HOST": host,
        "KUBERNETES_SERVICE_PORT": port,
        "KUBERNETES_SERVICE_PORT_HTTPS": port,
        "KUBERNETES_PORT": whole,
        link: whole,
        f"{link}_PROTO": "tcp",
        f"{link}_PORT": port,
        f"{link}_ADDR": host,
    }
