"""The audit log: who asked for what, when, and what came of it, a line of JSON for each."""

from podfit.apiserver.audit.log import AuditLog
from podfit.apiserver.audit.trail import Trail

__all__ = ["AuditLog", "Trail"]
