"""`podfit apiserver`: the API server alone, on its own file or on etcd."""

import asyncio
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from podfit.cli import exits, logs, render, serving
from podfit.cli.logs import LogFormat
from podfit.core.features import FeatureGates
from podfit.process.layout import DEFAULT_PORT, DataDir, default_data_dir


def apiserver(
    *,
    data: Annotated[
        Path | None,
        Parameter(help=f"Data directory: certificates, and the store without etcd. [default: {default_data_dir()}]"),
    ] = None,
    etcd_servers: Annotated[
        tuple[str, ...], Parameter(help="URLs of etcd, separated by commas. [default: a file in the data directory]")
    ] = (),
    etcd_cafile: Annotated[Path | None, Parameter(help="Who signed etcd's certificates.")] = None,
    etcd_certfile: Annotated[Path | None, Parameter(help="Certificate to show to etcd.")] = None,
    etcd_keyfile: Annotated[Path | None, Parameter(help="Its key.")] = None,
    etcd_prefix: Annotated[str, Parameter(help="Where in etcd the keys are.")] = "/registry",
    port: serving.Port = DEFAULT_PORT,
    bind_address: serving.BindAddress = (),
    advertise_address: serving.AdvertiseAddress = "",
    tls_san: serving.TlsSan = (),
    service_cluster_ip_range: serving.ServiceRange = serving.SERVICES,
    service_node_port_range: serving.NodePortRange = serving.NODE_PORTS,
    kubeconfig: Annotated[
        Path | None,
        Parameter(
            name=["--write-kubeconfig", "--kubeconfig"],
            help="Where to write an administrator's. [default: DATA/admin.kubeconfig]",
        ),
    ] = None,
    tls_cert_file: Annotated[Path | None, Parameter(help="Certificate to serve with. [default: issued]")] = None,
    tls_private_key_file: Annotated[Path | None, Parameter(help="Its key.")] = None,
    client_ca_file: Annotated[Path | None, Parameter(help="Who else may sign clients' certificates.")] = None,
    service_account_signing_key_file: Annotated[
        Path | None, Parameter(help="EC key that signs tokens. [default: made in the data directory]")
    ] = None,
    encryption_provider_config: serving.EncryptionConfig = None,
    feature_gates: serving.Gates = "",
    audit_log_path: serving.AuditLog = None,
    audit_policy_file: serving.AuditPolicy = None,
    log_format: serving.LogForm = LogFormat.TEXT,
    verbose: serving.Verbose = 0,
) -> int:
    """Serve the API and nothing else, until SIGINT or SIGTERM. Several may share one etcd (docs/store.md)."""
    from podfit.apiserver.audit.options import AuditOptions
    from podfit.apiserver.embedded import EtcdOptions
    from podfit.net import event_loop
    from podfit.net.system import SystemClock
    from podfit.net.tls import KeyPair
    from podfit.process.alone import AloneOptions, serve
    from podfit.process.errors import UsageError
    from podfit.process.foreground import stopping_on_signals
    from podfit.process.listening import listening
    from podfit.process.options import ranges_of

    servers = tuple(part for each in etcd_servers for part in each.split(",") if part)
    if not servers and any((etcd_cafile, etcd_certfile, etcd_keyfile)):
        raise UsageError("certificates for etcd were given, but no --etcd-servers")
    if (tls_cert_file is None) is not (tls_private_key_file is None):
        raise UsageError("--tls-cert-file and --tls-private-key-file belong together")
    options = AloneOptions(
        data=DataDir.at(data),
        port=port,
        kubeconfig=kubeconfig,
        client_ca=client_ca_file,
        listening=listening(bind_address, advertise_address, tls_san),
        ranges=ranges_of(service_cluster_ip_range, service_node_port_range),
        etcd=EtcdOptions(
            servers=servers,
            ca_file=etcd_cafile,
            cert_file=etcd_certfile,
            key_file=etcd_keyfile,
            prefix=etcd_prefix.rstrip("/"),
        )
        if servers
        else None,
        tls=KeyPair(tls_cert_file, tls_private_key_file) if tls_cert_file and tls_private_key_file else None,
        encryption=encryption_provider_config,
        signing_key=service_account_signing_key_file,
        gates=FeatureGates.parse(feature_gates),
        audit=AuditOptions(log=audit_log_path, policy=audit_policy_file),
    )
    options.check()
    logs.configure(log_format, verbose)

    async def run() -> None:
        async with stopping_on_signals():
            await serve(options, announce=render.line, clock=SystemClock(), until=asyncio.Event().wait)

    try:
        event_loop.run(run())
    except asyncio.CancelledError:
        render.line("stopped")
    return exits.DONE
