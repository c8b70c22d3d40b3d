"""The checks of each level and version.

A check has revisions; that of the highest version not above the policy's counts. A version above the newest revision,
and `latest`, count as the newest. Restricted is the checks of baseline, without those that a restricted check replaces,
and then its own; within a level they are in the order of their ids.
"""

from functools import lru_cache

import msgspec

from podfit.api.core.v1.pods.types import PodSpec
from podfit.api.meta.v1.types import ObjectMeta
from podfit.apiserver.admission.pod_security_standards import baseline, restricted
from podfit.apiserver.admission.pod_security_standards.findings import Check, Violation
from podfit.apiserver.admission.pod_security_standards.policy import LevelVersion
from podfit.apiserver.admission.pod_security_standards.restricted import but_in_user_namespace, but_on_windows


class Revision(msgspec.Struct, frozen=True):
    since: int  # minor version
    check: Check


class Registered(msgspec.Struct, frozen=True):
    id: str
    revisions: tuple[Revision, ...]  # oldest first
    replaces: str = ""  # the id of a baseline check


def _registered(check_id: str, *revisions: tuple[int, Check], replaces: str = "") -> Registered:
    return Registered(check_id, tuple(Revision(since, check) for since, check in revisions), replaces)


BASELINE = (
    _registered("appArmorProfile", (0, baseline.app_armor)),
    _registered("capabilities_baseline", (0, baseline.capabilities)),
    _registered("hostNamespaces", (0, baseline.host_namespaces)),
    _registered("hostPathVolumes", (0, baseline.host_path_volumes)),
    _registered("hostPorts", (0, baseline.host_ports)),
    _registered("hostProbesAndHostLifecycle", (34, baseline.host_probes)),
    _registered("privileged", (0, baseline.privileged)),
    _registered("procMount", (0, baseline.proc_mount), (35, baseline.proc_mount_35)),
    _registered(
        "seLinuxOptions",
        (0, baseline.selinux(baseline.SELINUX_TYPES)),
        (31, baseline.selinux(baseline.SELINUX_TYPES_31)),
    ),
    _registered("seccompProfile_baseline", (0, baseline.seccomp_annotations), (19, baseline.seccomp_19)),
    _registered(
        "sysctls",
        (0, baseline.sysctls(baseline.SYSCTLS)),
        (27, baseline.sysctls(baseline.SYSCTLS_27)),
        (29, baseline.sysctls(baseline.SYSCTLS_29)),
        (32, baseline.sysctls(baseline.SYSCTLS_32)),
    ),
    _registered("windowsHostProcess", (0, baseline.windows_host_process)),
)
RESTRICTED = (
    _registered(
        "allowPrivilegeEscalation",
        (8, restricted.privilege_escalation),
        (25, but_on_windows(restricted.privilege_escalation)),
    ),
    _registered(
        "capabilities_restricted",
        (22, restricted.capabilities),
        (25, but_on_windows(restricted.capabilities)),
        replaces="capabilities_baseline",
    ),
    _registered("procMount_restricted", (35, baseline.proc_mount), replaces="procMount"),
    _registered("restrictedVolumes", (0, restricted.volume_types), replaces="hostPathVolumes"),
    _registered(
        "runAsNonRoot", (0, restricted.run_as_non_root), (35, but_in_user_namespace(restricted.run_as_non_root))
    ),
    _registered("runAsUser", (23, restricted.run_as_user), (35, but_in_user_namespace(restricted.run_as_user))),
    _registered(
        "seccompProfile_restricted",
        (19, restricted.seccomp),
        (25, but_on_windows(restricted.seccomp)),
        replaces="seccompProfile_baseline",
    ),
)
NEWEST = max(revision.since for registered in (*BASELINE, *RESTRICTED) for revision in registered.revisions)


def violations(wanted: LevelVersion, meta: ObjectMeta, spec: PodSpec) -> tuple[Violation, ...]:
    """What the pod does that the level forbids; empty for privileged."""
    return tuple(found for check in checks_of(wanted) if (found := check(meta, spec)) is not None)


def checks_of(wanted: LevelVersion) -> tuple[Check, ...]:
    """In the order in which messages name what they find."""
    if wanted.level == "privileged":
        return ()
    return _checks(NEWEST if wanted.minor is None else min(wanted.minor, NEWEST), wanted.level == "restricted")


@lru_cache(maxsize=2 * (NEWEST + 1))
def _checks(minor: int, strict: bool) -> tuple[Check, ...]:
    own = [(entry.replaces, check) for entry in RESTRICTED if strict and (check := _revision(entry, minor))]
    replaced = {check_id for check_id, _ in own}
    kept = [check for entry in BASELINE if entry.id not in replaced and (check := _revision(entry, minor))]
    return (*kept, *(check for _, check in own))


def _revision(registered: Registered, minor: int) -> Check | None:
    due = [revision.check for revision in registered.revisions if revision.since <= minor]
    return due[-1] if due else None
