"""Annotations by which pods once said what they have fields for today, and those that the system writes."""

import re
from collections.abc import Iterator, Mapping

from podfit.api.core.v1.pods.security import AppArmorProfile, SeccompProfile
from podfit.api.core.v1.pods.types import MIRROR, PodSpec
from podfit.api.core.v1.pods.validation.deprecations import APP_ARMOR, SECCOMP_CONTAINER, SECCOMP_POD
from podfit.api.core.v1.pods.validation.volume_files import local_path
from podfit.api.core.v1.pods.validation.windows import containers_of
from podfit.core.fields import FieldError, forbidden, invalid

_PROFILES = (SECCOMP_POD, SECCOMP_CONTAINER, APP_ARMOR)
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_COST = re.compile(r"[+-]?[0-9]+\Z")
_LOCAL = "localhost/"
_SECCOMP = {"Unconfined": ("unconfined",), "RuntimeDefault": ("runtime/default", "docker/default")}
_APP_ARMOR = {"Unconfined": ("unconfined",), "RuntimeDefault": ("runtime/default",)}


def validate_pod_annotations(annotations: Mapping[str, str], spec: PodSpec, path: str) -> list[FieldError]:
    if not any("kubernetes.io/" in key for key in annotations):
        return []  # all that is checked here is the system's
    errors = []
    mirror = annotations.get(MIRROR)
    if mirror is not None and not spec.node_name:
        text = "must set spec.nodeName if mirror pod annotation is set"
        errors.append(invalid(f"{path}[{MIRROR}]", mirror, text))
    cost = annotations.get(DELETION_COST)
    if cost is not None and not _is_cost(cost):
        errors.append(invalid(f"{path}[{DELETION_COST}]", cost, "must be a 32bit integer"))
    if SECCOMP_POD in annotations:
        errors += _seccomp(annotations[SECCOMP_POD], f"{path}.{SECCOMP_POD}")
    for key in sorted(annotations):
        if key.startswith(SECCOMP_CONTAINER):
            errors += _seccomp(annotations[key], f"{path}.{key}")
    return errors + _app_armor(annotations, spec, path)


def _is_cost(text: str) -> bool:
    """A number of 32 bits, without zeros before it and with no plus."""
    if not _COST.match(text) or len(text) > 11:
        return False
    digits = text.removeprefix("-")
    return not text.startswith("+") and (digits == "0" or digits[0] != "0") and -(2**31) <= int(text) < 2**31


def _seccomp(profile: str, path: str) -> list[FieldError]:
    if profile in ("runtime/default", "docker/default", "unconfined"):
        return []
    if profile.startswith(_LOCAL):
        return local_path(profile.removeprefix(_LOCAL), path)
    return [invalid(path, profile, "must be a valid seccomp profile")]


def _app_armor(annotations: Mapping[str, str], spec: PodSpec, path: str) -> list[FieldError]:
    errors = []
    keys = sorted(key for key in annotations if key.startswith(APP_ARMOR))
    names = {container.name for container, _ in containers_of(spec, "")} if keys else set()
    for key in keys:
        name, profile = key.removeprefix(APP_ARMOR), annotations[key]
        if name not in names:
            errors.append(invalid(f"{path}[{key}]", name, "container not found"))
        if profile not in ("", "runtime/default", "unconfined") and not profile.startswith(_LOCAL):
            errors.append(invalid(f"{path}[{key}]", profile, f'invalid AppArmor profile name: "{profile}"'))
    return errors


def validate_annotation_update(new: Mapping[str, str], old: Mapping[str, str], path: str) -> list[FieldError]:
    """What a running pod has taken up stays."""
    errors: list[FieldError] = []
    if new is old:
        return errors
    for key in sorted(old):
        if new.get(key) == old[key]:
            continue
        if key.startswith(APP_ARMOR):
            errors.append(forbidden(f"{path}[{key}]", "may not remove or update AppArmor annotations"))
        if key == MIRROR:
            errors.append(forbidden(f"{path}[{key}]", "may not remove or update mirror pod annotation"))
    for key in sorted(new.keys() - old.keys()):
        if key.startswith(APP_ARMOR):
            errors.append(forbidden(f"{path}[{key}]", "may not add AppArmor annotations"))
        if key == MIRROR:
            errors.append(forbidden(f"{path}[{key}]", "may not add mirror pod annotation"))
    return errors


def profiles_match(annotations: Mapping[str, str], spec: PodSpec, path: str) -> list[FieldError]:
    """Where an annotation and a field give a profile, they give the same one."""
    named = [key for key in annotations if key.startswith(_PROFILES)]
    return list(_mismatches(annotations, spec, path)) if named else []


def _mismatches(annotations: Mapping[str, str], spec: PodSpec, path: str) -> Iterator[FieldError]:
    own = spec.security_context
    if own is not None and own.seccomp_profile is not None and SECCOMP_POD in annotations:
        where = f"{path}.securityContext.seccompProfile"
        yield from _mismatch(annotations[SECCOMP_POD], own.seccomp_profile, _SECCOMP, "seccomp", where)
    containers = list(containers_of(spec, path))
    for container, at in containers:
        context, key = container.security_context, SECCOMP_CONTAINER + container.name
        if context is not None and context.seccomp_profile is not None and key in annotations:
            where = f"{at}.securityContext.seccompProfile"
            yield from _mismatch(annotations[key], context.seccomp_profile, _SECCOMP, "seccomp", where)
    for container, at in containers if spec.os is None or spec.os.name != "windows" else ():
        context, key = container.security_context, APP_ARMOR + container.name
        profile = (context.app_armor_profile if context else None) or (own.app_armor_profile if own else None)
        if profile is not None and key in annotations:
            where = f"{at}.securityContext.appArmorProfile"
            yield from _mismatch(annotations[key], profile, _APP_ARMOR, "apparmor", where)


def _mismatch(
    annotation: str,
    profile: SeccompProfile | AppArmorProfile,
    same: Mapping[str, tuple[str, ...]],
    spoken: str,
    path: str,
) -> Iterator[FieldError]:
    types = f"{spoken} type in annotation and field must match"
    if profile.type in same:
        if annotation not in same[profile.type]:
            yield forbidden(f"{path}.type", types)
    elif profile.type == "Localhost" and not annotation.startswith(_LOCAL):
        yield forbidden(f"{path}.type", types)
    elif profile.type == "Localhost" and annotation.removeprefix(_LOCAL) != profile.localhost_profile:
        yield forbidden(f"{path}.localhostProfile", f"{spoken} profile in annotation and field must match")
