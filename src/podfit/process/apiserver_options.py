"""Options of the API server that come from several flags, or from a file that a flag names."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from podfit.apiserver.extensions.audit.options import AuditOptions, BadPolicy
from podfit.apiserver.registry.encryption import EncryptionConfigError, read_rules
from podfit.apiserver.registry.service_allocation import BadRange, ServiceRanges
from podfit.apiserver.request.legacy_options import Legacy
from podfit.core.clock import Clock
from podfit.process.errors import MachineError, UsageError, reason
from podfit.store.etcd.options import EtcdOptions

if TYPE_CHECKING:
    from podfit.apiserver.extensions.audit.log import AuditLog
    from podfit.store.encrypted import Rule


def encryption_rules(path: Path | None) -> "tuple[Rule, ...]":
    """What an EncryptionConfiguration says; UsageError when it cannot be followed."""
    if path is None:
        return ()

    try:
        return read_rules(path)
    except EncryptionConfigError as error:
        raise UsageError(str(error)) from None


def open_audit(audit: AuditOptions, clock: Clock) -> "AuditLog | None":
    """MachineError when the file cannot be written."""
    try:
        return audit.open(clock)
    except OSError as error:
        raise MachineError(f"--audit-log-path: {audit.log} cannot be written ({reason(error)})") from error


def check_audit(audit: AuditOptions) -> None:
    """UsageError for a policy without a log, or one that cannot be read."""
    if audit.policy is not None and audit.log is None:
        raise UsageError("--audit-policy-file says what goes into a log: name the log with --audit-log-path")
    if audit.policy is None:
        return
    try:
        audit.read()
    except BadPolicy as error:
        raise UsageError(f"--audit-policy-file: {error}") from None


def etcd_options(
    given: Sequence[str], *, ca_file: Path | None, cert_file: Path | None, key_file: Path | None, prefix: str
) -> "EtcdOptions | None":
    """None when no etcd is named. Raises UsageError."""
    servers = tuple(server for text in given for server in text.split(",") if server)
    if not servers:
        if any((ca_file, cert_file, key_file)):
            raise UsageError("certificates for etcd were given, but no --etcd-servers")
        return None

    return EtcdOptions(
        servers=servers, ca_file=ca_file, cert_file=cert_file, key_file=key_file, prefix=prefix.rstrip("/")
    )


def ranges_of(addresses: str, ports: str) -> ServiceRanges:
    """What services get; UsageError for what is no range."""
    try:
        return ServiceRanges.parse(addresses, ports)
    except BadRange as error:
        raise UsageError(str(error)) from None


def legacy_of(switches: str, clients: str) -> Legacy:
    """What `--legacy` and `--legacy-clients` ask for; UsageError for a switch that there is not."""
    try:
        return Legacy.parse(switches, clients)
    except ValueError as error:
        raise UsageError(f"--legacy: {error}") from None
