"""The flags that the two verbs which serve the API, `up` and `apiserver`, have in common."""

from pathlib import Path
from typing import Annotated, TypeAlias

from cyclopts import Parameter

from podfit.cli.logs import LogFormat

Port: TypeAlias = Annotated[
    int, Parameter(name=["--port", "--secure-port"], help="Port of the API server; 0 takes a free one.")
]
BindAddress: TypeAlias = Annotated[
    tuple[str, ...],
    Parameter(
        help="IP addresses to listen on, separated by commas; 0.0.0.0 for all. `up` listens on "
        "127.0.0.1 besides. [default: 127.0.0.1]",
        negative="",
        show_default=False,
    ),
]
AdvertiseAddress: TypeAlias = Annotated[
    str, Parameter(help="IP address that pods and other clients are told. [default: where it listens]")
]
TlsSan: TypeAlias = Annotated[
    tuple[str, ...], Parameter(help="More names and addresses for its certificate.", negative="", show_default=False)
]
ServiceRange: TypeAlias = Annotated[str, Parameter(help="Addresses of services.")]
NodePortRange: TypeAlias = Annotated[str, Parameter(help="Node ports of services.")]
EncryptionConfig: TypeAlias = Annotated[
    Path | None, Parameter(help="An EncryptionConfiguration: what is encrypted at rest, and how (docs/store.md).")
]
Gates: TypeAlias = Annotated[str, Parameter(help="NAME=true,OTHER=false; upstream's names, defaults of 1.36.")]
AuditLog: TypeAlias = Annotated[Path | None, Parameter(help="Record who asked for what, in lines of JSON.")]
AuditPolicy: TypeAlias = Annotated[
    Path | None, Parameter(help="Which requests, and how much of them. [default: all, metadata only]")
]
LogForm: TypeAlias = Annotated[LogFormat, Parameter(help="text or json, on stderr.")]
Verbose: TypeAlias = Annotated[
    int, Parameter(name=["--verbose", "-v"], count=True, help="Say more; twice: everything.")
]

SERVICES, NODE_PORTS = "10.96.0.0/12", "30000-32767"
