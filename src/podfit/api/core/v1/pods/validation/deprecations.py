"""Deprecation warnings of pods and templates: annotations and volumes that count no more."""

from collections.abc import Iterator
from operator import attrgetter

from msgspec.structs import replace

from podfit.api.core.v1.pods.aggregate import with_ephemeral
from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.security import AppArmorProfile, SecurityContext
from podfit.api.core.v1.pods.types import Pod, PodSpec
from podfit.api.meta.v1.types import ObjectMeta

APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
NODE_LABELS = {
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
}
_OF_CONTAINERS = (SECCOMP_CONTAINER, APP_ARMOR)
_NO_FUNCTION = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_VOLUMES = (
    ("photon_persistent_disk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("git_repo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scale_io", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
)
_deprecated_sources = attrgetter(*(attribute for attribute, _, _ in _VOLUMES))
_NO_SOURCES = (None,) * len(_VOLUMES)
_SECCOMP_TEXT = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_APP_ARMOR_TEXT = 'deprecated since v1.30; use the "appArmorProfile" field instead'


def deprecations(meta: ObjectMeta, spec: PodSpec, path: str = "") -> Iterator[str]:  # noqa: C901  (upstream's list)
    """`path` is that of the template, with a dot at its end; a pod has none."""
    annotations = meta.annotations
    if not _NO_FUNCTION.keys().isdisjoint(annotations):
        for key, text in _NO_FUNCTION.items():
            if key in annotations:
                yield _of_annotation(path, key, text)
    for index, volume in enumerate(spec.volumes):
        if _deprecated_sources(volume) == _NO_SOURCES:
            continue
        for attribute, name, text in _VOLUMES:
            if getattr(volume, attribute) is not None:
                yield f"{path}spec.volumes[{index}].{name}: {text}"
    if not annotations:
        return
    own = spec.security_context
    if (own is None or own.seccomp_profile is None) and SECCOMP_POD in annotations:
        yield _of_annotation(path, SECCOMP_POD, _SECCOMP_TEXT)
    if not any(key.startswith(_OF_CONTAINERS) for key in annotations):
        return
    for container in with_ephemeral(spec):
        context = container.security_context or SecurityContext()
        key = SECCOMP_CONTAINER + container.name
        if context.seccomp_profile is None and key in annotations:
            yield _of_annotation(path, key, _SECCOMP_TEXT)
        key = APP_ARMOR + container.name
        has_field = context.app_armor_profile is not None or (own is not None and own.app_armor_profile is not None)
        if path and not has_field and key in annotations:
            yield _of_annotation(path, key, _APP_ARMOR_TEXT)


def with_app_armor(pod: Pod) -> tuple[Pod, list[str]]:
    """A new pod's containers with the AppArmor profiles that annotations give them, and the warnings about those."""
    spec = pod.spec
    if not pod.metadata.annotations:
        return pod, []
    has_annotation = any(key.startswith(APP_ARMOR) for key in pod.metadata.annotations)
    if not has_annotation or (spec.os is not None and spec.os.name == "windows"):
        return pod, []
    told: list[str] = []
    init = tuple([_profiled(pod, container, told) for container in spec.init_containers])
    main = tuple([_profiled(pod, container, told) for container in spec.containers])
    return replace(pod, spec=replace(spec, init_containers=init, containers=main)), told


def _profiled(pod: Pod, container: Container, told: list[str]) -> Container:
    key = APP_ARMOR + container.name
    annotation, context = pod.metadata.annotations.get(key), container.security_context or SecurityContext()
    if annotation is None or context.app_armor_profile is not None:
        return container
    profile, own = _profile_of(annotation), pod.spec.security_context
    if profile is not None and own is not None and profile == own.app_armor_profile:
        return container
    told.append(_of_annotation("", key, _APP_ARMOR_TEXT))
    if profile is None:
        return container
    return replace(container, security_context=replace(context, app_armor_profile=profile))


def _profile_of(annotation: str) -> AppArmorProfile | None:
    kind, _, name = annotation.partition("/")
    if annotation == "unconfined":
        return AppArmorProfile(type="Unconfined")
    if annotation == "runtime/default":
        return AppArmorProfile(type="RuntimeDefault")
    return AppArmorProfile(type="Localhost", localhost_profile=name) if kind == "localhost" and name else None


def _of_annotation(path: str, key: str, text: str) -> str:
    return f"{path}metadata.annotations[{key}]: {text}"
