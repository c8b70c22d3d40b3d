"""Options of `podfit cluster-autoscaler`: upstream's names and defaults, and where its node groups come from."""

import os
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec
import yaml
from msgspec.structs import replace

from podfit.autoscaler.kwok import LARGEST_FILE, BadGroups, GroupTemplate, KwokProvider, read_groups
from podfit.autoscaler.provider import Provider
from podfit.client import places
from podfit.client.rest import Client
from podfit.core.durations import parse_duration
from podfit.core.options import AT_LEAST_1, Option, Part
from podfit.decide.capacity.settings import AutoscalerSettings
from podfit.process.control.options import BURST, KUBECONFIG, Connection, ElectedOptions, Qps, SecurePort
from podfit.process.errors import UsageError
from podfit.process.options import NODE_GROUPS

LEASE = places.LEASE
LARGEST_CONFIG = 1 << 20
_LOOPBACK = ("127.", "localhost:", "[::1]:")


class CloudProvider(StrEnum):
    KWOK = "kwok"
    EXTERNAL = "externalgrpc"


class AutoscalerConnection(Connection, frozen=True, kw_only=True):
    """Beside any cluster."""

    kubeconfig: Annotated[
        Path | None, replace(KUBECONFIG, usual="KUBECONFIG, ~/.kube/config, or the pod's account")
    ] = None
    qps: Qps = 50.0
    burst: Annotated[int, replace(BURST, bound=AT_LEAST_1)] = 100


class AutoscalerOptions(ElectedOptions, frozen=True, kw_only=True):
    """`podfit cluster-autoscaler`."""

    connection: Annotated[AutoscalerConnection, Part()] = AutoscalerConnection()
    port: SecurePort = 8085
    cloud_provider: Annotated[
        CloudProvider, Option("Who has the node groups: a file of templates, or another program.")
    ] = CloudProvider.KWOK
    node_groups: Annotated[Path | None, NODE_GROUPS] = None
    cloud_config: Annotated[
        Path | None, Option("With externalgrpc, upstream's file: address, key, cert, cacert, grpc_timeout.")
    ] = None
    settings: Annotated[AutoscalerSettings, Part()] = AutoscalerSettings()

    def provider(self) -> Callable[[Client], Provider]:
        """Makes it of a client of the cluster. Raises UsageError."""
        if self.cloud_provider is CloudProvider.KWOK:
            if self.node_groups is None:
                raise UsageError("--cloud-provider kwok: name a file of templates with --node-groups")
            groups = groups_of(self.node_groups)
            return lambda client: KwokProvider(client, groups)
        if self.cloud_config is None:
            raise UsageError("--cloud-provider externalgrpc: name its file with --cloud-config")
        return _external(self.cloud_config)


def groups_of(file: Path) -> tuple[GroupTemplate, ...]:
    """Raises UsageError."""
    try:
        return read_groups(_text(file, LARGEST_FILE))
    except BadGroups as error:
        raise UsageError(f"--node-groups {file}: {error}") from error


class CloudConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Upstream's file; the paths are on this machine."""

    address: str
    key: str = ""
    cert: str = ""
    cacert: str = ""
    grpc_timeout: str = "5s"


def _external(file: Path) -> Callable[[Client], Provider]:
    """Raises UsageError."""
    try:
        config = msgspec.convert(yaml.load(_text(file, LARGEST_CONFIG), yaml.CSafeLoader), CloudConfig)
        timeout = parse_duration(config.grpc_timeout)
    except (yaml.YAMLError, msgspec.ValidationError, ValueError) as error:
        raise UsageError(f"--cloud-config {file}: {error}") from error
    files = [config.cert, config.key, config.cacert]
    if any(files) and not all(files):
        raise UsageError(f"--cloud-config {file}: cert, key and cacert belong together")
    if not any(files) and not config.address.startswith(("unix:", *_LOOPBACK)):
        text = "only a Unix socket (unix:///PATH) and loopback go without cert, key and cacert"
        raise UsageError(f"--cloud-config {file}: {text}")
    if not 0 < timeout <= 60:
        raise UsageError(f"--cloud-config {file}: grpc_timeout is more than 0 and at most 1m")
    secrets = [_secret(file, name) for name in files] if any(files) else [b"", b"", b""]

    def made(client: Client) -> Provider:
        from podfit.autoscaler.external.provider import Connection as Reached  # loads gRPC
        from podfit.autoscaler.external.provider import ExternalProvider

        certificate, key, authority = secrets
        return ExternalProvider(
            Reached(address=config.address, certificate=certificate, key=key, authority=authority, timeout=timeout)
        )

    return made


def _secret(config: Path, name: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise UsageError(f"--cloud-config {config}: {name}: {error.strerror}") from error


def _text(file: Path, most: int) -> str:
    """Raises UsageError: it is missing, no file of text, or too large."""
    try:
        with file.open("rb") as stream:
            data = stream.read(most + 1)
        if len(data) > most:
            raise UsageError(f"{file}: it is larger than {most >> 20} MiB")
        return data.decode()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise UsageError(f"{os.fspath(file)}: {why}") from error
