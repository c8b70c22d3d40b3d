"""Options of the audit log. They load nothing of what they name."""

from pathlib import Path
from typing import Annotated

import msgspec
import yaml

from podfit.api.audit.v1.types import AuditPolicy
from podfit.api.meta import codec
from podfit.apiserver.extensions.audit.log import AuditLog
from podfit.apiserver.extensions.audit.policy import EVERYTHING, problems
from podfit.core.clock import Clock
from podfit.core.options import Option
from podfit.net.files import misread, read_given

_WANTED = "it has to hold a Policy of audit.k8s.io/v1 with its rules"


class BadPolicy(ValueError):
    pass


class AuditOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Without a policy everything is recorded at level Metadata when it is complete."""

    log: Annotated[Path | None, Option("Record who asked for what, in lines of JSON.", flag="audit-log-path")] = None
    policy: Annotated[
        Path | None,
        Option("Which requests, and how much of them.", flag="audit-policy-file", usual="all, metadata only"),
    ] = None

    def read(self) -> "AuditPolicy":
        """Raises BadPolicy that says what is wrong with the file."""
        if self.policy is None:
            return EVERYTHING
        try:
            document = yaml.safe_load(read_given(self.policy))
            policy = codec.convert(document, AuditPolicy)
        except (OSError, yaml.YAMLError, msgspec.ValidationError, ValueError) as error:
            raise BadPolicy(f"{self.policy} {misread(error)}; {_WANTED}") from None
        wrong = problems(policy)
        if (policy.kind, policy.api_version) != ("Policy", "audit.k8s.io/v1"):
            wrong.insert(0, f"{policy.api_version} {policy.kind} is not audit.k8s.io/v1 Policy")
        if wrong:
            raise BadPolicy(f"{self.policy}: {'; '.join(wrong)}; {_WANTED}")
        return policy

    def open(self, clock: Clock) -> "AuditLog | None":
        """None when nothing is to be recorded. Raises BadPolicy, OSError."""
        return AuditLog(self.log, self.read(), clock) if self.log is not None else None
