"""Options of the API server that come from several flags, or from a file that a flag names."""

from pathlib import Path
from typing import TYPE_CHECKING

from podfit.apiserver.extensions.audit.options import AuditOptions, BadPolicy
from podfit.core.clock import Clock
from podfit.process.errors import MachineError, UsageError, reason

if TYPE_CHECKING:
    from podfit.apiserver.extensions.audit.log import AuditLog
    from podfit.store.encrypted import Rule


def encryption_rules(path: Path | None) -> "tuple[Rule, ...]":
    """What an EncryptionConfiguration says; UsageError when it cannot be followed."""
    if path is None:
        return ()
    # With all kinds of the API behind it: a tenth of what every `up --detach` and `down` would import.
    from podfit.apiserver.registry.encryption import EncryptionConfigError, read_rules

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
