"""The checks of the restricted level, which come after those of baseline that none of these replaces."""

from podfit.api.core.v1.pods.types import PodSpec
from podfit.api.core.v1.pods.volumes import Volume
from podfit.api.meta.v1.types import ObjectMeta
from podfit.apiserver.admission.pod_security_standards.baseline import SAFE_PROFILES, bad_seccomp
from podfit.apiserver.admission.pod_security_standards.findings import (
    Check,
    Violation,
    contexts_of,
    in_user_namespace,
    is_windows,
    named,
    plural,
    pod_context_of,
    quoted,
    setters,
    uses,
)

ALLOWED_VOLUMES = frozenset(
    (
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    )
)
_SOURCES = tuple(
    (attribute, name)
    for attribute, name in zip(Volume.__struct_fields__, Volume.__struct_encode_fields__, strict=True)
    if attribute != "name"
)
_UNKNOWN_SOURCE = "unknown"


def volume_types(_: ObjectMeta, spec: PodSpec) -> Violation | None:
    found = [(volume.name, kind) for volume in spec.volumes if (kind := _type(volume)) not in ALLOWED_VOLUMES]
    if not found:
        return None
    names, types = [name for name, _ in found], sorted({kind for _, kind in found})
    text = f"{named('volume', names)} {uses(names)} {plural('restricted volume type', types)} {quoted(types)}"
    return Violation("restricted volume types", text)


def _type(volume: Volume) -> str:
    given = [name for attribute, name in _SOURCES if getattr(volume, attribute) is not None]
    return next((name for name in given if name in ALLOWED_VOLUMES), given[0] if given else _UNKNOWN_SOURCE)


def privilege_escalation(_: ObjectMeta, spec: PodSpec) -> Violation | None:
    names = [name for name, context in contexts_of(spec) if context.allow_privilege_escalation is not False]
    if not names:
        return None
    text = f"{named('container', names)} must set securityContext.allowPrivilegeEscalation=false"
    return Violation("allowPrivilegeEscalation != false", text)


def run_as_non_root(_: ObjectMeta, spec: PodSpec) -> Violation | None:
    own = pod_context_of(spec).run_as_non_root
    given = [(name, context.run_as_non_root) for name, context in contexts_of(spec)]
    if who := setters(pod=own is False, containers=[name for name, value in given if value is False]):
        return Violation("runAsNonRoot != true", f"{who} must not set securityContext.runAsNonRoot=false")
    unset = [name for name, value in given if value is None]
    if own or not unset:
        return None
    return Violation(
        "runAsNonRoot != true", f"pod or {named('container', unset)} must set securityContext.runAsNonRoot=true"
    )


def run_as_user(_: ObjectMeta, spec: PodSpec) -> Violation | None:
    names = [name for name, context in contexts_of(spec) if context.run_as_user == 0]
    who = setters(pod=pod_context_of(spec).run_as_user == 0, containers=names)
    return Violation("runAsUser=0", f"{who} must not set runAsUser=0") if who else None


def seccomp(_: ObjectMeta, spec: PodSpec) -> Violation | None:
    if bad := bad_seccomp(spec):
        return bad
    own = pod_context_of(spec).seccomp_profile
    unset = [name for name, context in contexts_of(spec) if context.seccomp_profile is None]
    if own is not None or not unset:
        return None
    values = " or ".join(f'"{profile}"' for profile in SAFE_PROFILES)
    text = f"pod or {named('container', unset)} must set securityContext.seccompProfile.type to {values}"
    return Violation("seccompProfile", text)


def capabilities(_: ObjectMeta, spec: PodSpec) -> Violation | None:
    kept, adding, added = [], [], set()
    for name, context in contexts_of(spec):
        given = context.capabilities
        if given is None or "ALL" not in given.drop:
            kept.append(name)
        if given is not None and (other := set(given.add) - {"NET_BIND_SERVICE"}):
            adding.append(name)
            added |= other
    texts = [f'{named("container", kept)} must set securityContext.capabilities.drop=["ALL"]'] if kept else []
    if adding:
        what = f"must not include {quoted(sorted(added))} in securityContext.capabilities.add"
        texts.append(f"{named('container', adding)} {what}")
    return Violation("unrestricted capabilities", "; ".join(texts)) if texts else None


def but_on_windows(check: Check) -> Check:
    def checked(meta: ObjectMeta, spec: PodSpec) -> Violation | None:
        return None if is_windows(spec) else check(meta, spec)

    return checked


def but_in_user_namespace(check: Check) -> Check:
    def checked(meta: ObjectMeta, spec: PodSpec) -> Violation | None:
        return None if in_user_namespace(spec) else check(meta, spec)

    return checked
