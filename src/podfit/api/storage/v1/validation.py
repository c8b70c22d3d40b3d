"""Persistent volumes, claims, storage classes, runtime classes, and what CSI drivers say of themselves and of nodes."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from podfit.api.core.v1.persistentvolumes.claim_validation import claim_spec
from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.persistentvolumes.types import CLASS_ANNOTATION, PersistentVolume
from podfit.api.core.v1.persistentvolumes.validation import validate_volume, validate_volume_update
from podfit.api.core.v1.pods.affinity import Toleration
from podfit.api.core.v1.pods.validation.resources import validate_overhead
from podfit.api.core.v1.pods.validation.scheduling import validate_tolerations
from podfit.api.core.v1.topology import TopologySelectorLabelRequirement, TopologySelectorTerm
from podfit.api.meta.base import Object, ResourceList
from podfit.api.meta.validation import names
from podfit.api.meta.validation.metadata import immutable, validate_labels
from podfit.api.meta.validation.rules import Rules
from podfit.api.node.v1.types import RuntimeClass
from podfit.api.storage.v1.types import CSIDriver, CSIDriverSpec, CSINode, CSINodeDriver, StorageClass, TokenRequest
from podfit.core.fields import FieldError, duplicate, forbidden, invalid, required, too_long, unsupported
from podfit.core.quantity import ZERO, Quantity

LONGEST_NAME = 63
LONGEST_ID = 192


def validate_csi_node(node: CSINode) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, driver in enumerate(node.spec.drivers or ()):
        path = f"spec.drivers[{index}]"
        errors += _name(driver.name, f"{path}.name") + _node_id(driver.node_id, f"{path}.nodeID")
        count = driver.allocatable.count if driver.allocatable else None
        if count is not None and count < 0:
            errors.append(invalid(f"{path}.allocatable.count", count, "must be greater than or equal to 0"))
        if driver.name in seen:
            errors.append(duplicate(f"{path}.name", driver.name))
        seen.add(driver.name)
        errors += _topology(driver.topology_keys or (), path)
    return errors


def _name(name: str, path: str) -> list[FieldError]:
    if not name:
        return [required(path)]
    errors = [too_long(path, LONGEST_NAME)] if len(name) > LONGEST_NAME else []
    return errors + [invalid(path, name, text) for text in names.dns_subdomain(name.lower())]


def _node_id(node_id: str, path: str) -> list[FieldError]:
    if not node_id:
        return [required(path)]
    too_many = len(node_id.encode()) > LONGEST_ID
    return [invalid(path, node_id, f"must be {LONGEST_ID} characters or less")] if too_many else []


def _topology(keys: Sequence[str], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for key in keys:
        if not key:
            errors.append(required(path))
        if key in seen:
            errors.append(duplicate(path, key))
        seen.add(key)
        errors += [invalid(path, key, text) for text in names.qualified(key)]
    return errors


def validate_csi_node_update(new: CSINode, old: CSINode) -> list[FieldError]:
    """A driver that is registered already keeps what it said, but for how many volumes it can attach."""
    errors = validate_csi_node(new)
    before = {driver.name: driver for driver in (old.spec.drivers or ())}
    for driver in new.spec.drivers or ():
        if driver.name in before:
            errors += immutable(_fixed(driver), _fixed(before[driver.name]), "spec.drivers")
    return errors


def _fixed(driver: CSINodeDriver) -> CSINodeDriver:
    return replace(driver, allocatable=None)


_FS_GROUP_POLICIES = ("File", "None", "ReadWriteOnceWithFSType")
_LIFECYCLES = ("Persistent", "Ephemeral")
_SHORTEST, _LONGEST = 600, 2**32  # seconds of a token
_SHORTEST_PERIOD = 10  # seconds between two looks at how many volumes a node takes


def validate_driver(driver: CSIDriver) -> list[FieldError]:
    spec = driver.spec
    given = (
        (spec.attach_required, "attachedRequired"),
        (spec.pod_info_on_mount, "podInfoOnMount"),
        (spec.storage_capacity, "storageCapacity"),
    )
    errors = [required(f"spec.{name}") for value, name in given if value is None]
    policy = spec.fs_group_policy
    if policy is not None and policy not in _FS_GROUP_POLICIES:
        errors.append(unsupported("spec.fsGroupPolicy", policy, _FS_GROUP_POLICIES))
    errors += _tokens(spec.token_requests, "spec.tokenRequests")
    for mode in spec.volume_lifecycle_modes:
        if mode not in _LIFECYCLES:
            errors.append(unsupported("spec.volumeLifecycleModes", mode, _LIFECYCLES))
    if spec.se_linux_mount is None:
        errors.append(required("spec.seLinuxMount"))
    return errors + _rest(spec)


def _rest(spec: CSIDriverSpec) -> list[FieldError]:
    errors, period = [], spec.node_allocatable_update_period_seconds
    if period is not None and period < _SHORTEST_PERIOD:
        text = f"must be greater than or equal to {_SHORTEST_PERIOD} seconds"
        errors.append(invalid("spec.nodeAllocatableUpdatePeriodSeconds", period, text))
    in_secrets = spec.service_account_token_in_secrets
    if in_secrets is not None and not spec.token_requests:
        text = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        errors.append(invalid("spec.serviceAccountTokenInSecrets", in_secrets, text))
    return errors


def _tokens(asked: Sequence[TokenRequest], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, request in enumerate(asked):
        if request.audience in seen:
            errors.append(duplicate(f"{path}[{index}].audience", request.audience))
            continue
        seen.add(request.audience)
        seconds, where = request.expiration_seconds, f"{path}[{index}].expirationSeconds"
        if seconds is not None and seconds < _SHORTEST:
            errors.append(invalid(where, seconds, "may not specify a duration less than 10 minutes"))
        if seconds is not None and seconds > _LONGEST:
            errors.append(invalid(where, seconds, "may not specify a duration larger than 2^32 seconds"))
    return errors


def validate_driver_update(new: CSIDriver, old: CSIDriver) -> list[FieldError]:
    """Whether volumes are attached and whose they may be stays."""
    after, before = new.spec, old.spec
    errors = validate_driver(new)
    errors += immutable(after.attach_required, before.attach_required, "spec.attachedRequired")
    path = "spec.volumeLifecycleModes"
    return errors + immutable(after.volume_lifecycle_modes, before.volume_lifecycle_modes, path)


_GROWING = (
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
)
_MOST_PARAMETERS, _LARGEST_PARAMETERS = 512, 256 * 1024
_FIXED = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"


def validate_claim(claim: PersistentVolumeClaim) -> list[FieldError]:
    return claim_spec(claim.spec, "spec")


def validate_claim_update(new: PersistentVolumeClaim, old: PersistentVolumeClaim) -> list[FieldError]:
    """Once made a claim stays as it is, but for growing when it is bound."""
    after, before = new.spec, old.spec
    errors = validate_claim(new)
    told, called = (claim.metadata.annotations.get(CLASS_ANNOTATION, "") for claim in (new, old))
    upgraded = _is_upgraded(new, old)
    if not upgraded:
        errors += immutable(told, called, f"metadata.annotations.{CLASS_ANNOTATION}")
    if not before.volume_name:
        before = replace(before, volume_name=after.volume_name)
    if before.storage_class_name is None and (upgraded or called in ("", after.storage_class_name)):
        before = replace(before, storage_class_name=after.storage_class_name)
    if new.status.phase == "Bound":
        resources = replace(before.resources, requests=_grown(before.resources.requests, after.resources.requests))
        before = replace(before, resources=resources, volume_attributes_class_name=after.volume_attributes_class_name)
    if after != before:
        errors.append(forbidden("spec", _FIXED))
    size, former = (claim_spec.resources.requests.get("storage", ZERO) for claim_spec in (after, old.spec))
    if size < former and size <= old.status.capacity.get("storage", ZERO):
        errors.append(forbidden("spec.resources.requests.storage", "field can not be less than status.capacity"))
    errors += immutable(new.spec.volume_mode, old.spec.volume_mode, "volumeMode")
    return errors + _attributes_kept(new, old)


def _is_upgraded(new: PersistentVolumeClaim, old: PersistentVolumeClaim) -> bool:
    """Whether the class that an annotation named is named by the field now."""
    called = old.metadata.annotations.get(CLASS_ANNOTATION)
    told = new.metadata.annotations.get(CLASS_ANNOTATION, called)
    moved = old.spec.storage_class_name is None and new.spec.storage_class_name == called
    return called is not None and moved and told == called


def _attributes_kept(new: PersistentVolumeClaim, old: PersistentVolumeClaim) -> list[FieldError]:
    """A volume that has attributes of a class keeps a class."""
    name, path = new.spec.volume_attributes_class_name, "spec.volumeAttributesClassName"
    if name == old.spec.volume_attributes_class_name or old.status.current_volume_attributes_class_name is None:
        return []
    why = "is forbidden when status.currentVolumeAttributesClassName is not nil"
    if name is None:
        return [forbidden(path, f"update to nil {why}")]
    return [] if name else [forbidden(path, f"update to empty string {why}")]


def validate_claim_status(new: PersistentVolumeClaim, _old: PersistentVolumeClaim) -> list[FieldError]:
    status = new.status
    errors = [] if new.spec.access_modes else [required("Spec.accessModes")]
    for name, size in sorted(status.capacity.items()):
        errors += _whole(size, f"status.capacity[{name}]")
    path = "status.allocatedResourceStatuses"
    for name, state in sorted(status.allocated_resource_statuses.items()):
        errors += _resource(name, path)
        if state not in _GROWING:
            errors.append(unsupported(path, name, _GROWING))
    for name, size in sorted(status.allocated_resources.items()):
        wrong = _resource(name, "status.allocatedResources")
        errors += wrong or _whole(size, f"status.allocatedResources[{name}]")
    return errors


def _whole(size: Quantity, path: str) -> list[FieldError]:
    return [invalid(path, size.value(), "must be a valid resource quantity")] if size.value() < 0 else []


def _resource(name: str, path: str) -> list[FieldError]:
    """Of Kubernetes' own names only storage is one of a claim's."""
    if problems := names.qualified(name):
        return [invalid(path, name, text) for text in problems]
    own = "/" not in name or "kubernetes.io/" in name
    return [unsupported(path, name, ("storage",))] if own and name != "storage" else []


def _grown(old: ResourceList, new: ResourceList) -> ResourceList:
    return {**old, **({"storage": new["storage"]} if "storage" in new else {})}


def validate_class(storage: StorageClass) -> list[FieldError]:
    name = storage.provisioner
    errors = [] if name else [required("provisioner")]
    if name:
        errors += [invalid("provisioner", name, text) for text in names.qualified(name.lower())]
    errors += _parameters(storage.parameters, "parameters")
    if storage.reclaim_policy not in ("Delete", "Retain"):
        errors.append(unsupported("reclaimPolicy", storage.reclaim_policy, ("Delete", "Retain")))
    modes = ("Immediate", "WaitForFirstConsumer")
    if storage.volume_binding_mode not in modes:
        errors.append(unsupported("volumeBindingMode", storage.volume_binding_mode, modes))
    return errors + _topologies(storage.allowed_topologies, "allowedTopologies")


def _parameters(parameters: Mapping[str, str], path: str) -> list[FieldError]:
    if len(parameters) > _MOST_PARAMETERS:
        return [too_long(path, _MOST_PARAMETERS)]
    errors = [invalid(path, "", "field can not be empty.")] if "" in parameters else []
    size = sum(len(key.encode()) + len(value.encode()) for key, value in parameters.items())
    return [*errors, too_long(path, _LARGEST_PARAMETERS)] if size > _LARGEST_PARAMETERS else errors


def _topologies(terms: tuple[TopologySelectorTerm, ...], path: str) -> list[FieldError]:
    """No term says what another one says, in whatever order."""
    errors: list[FieldError] = []
    seen: list[dict[str, set[str]]] = []
    for index, term in enumerate(terms):
        where = f"{path}[{index}].matchLabelExpressions"
        said: dict[str, set[str]] = {}
        for position, expression in enumerate(term.match_label_expressions):
            errors += _label(expression, f"{where}[{position}]")
            errors += [duplicate(f"{where}[{position}].key", expression.key)] if expression.key in said else []
            said[expression.key] = set(expression.values)
        if said in seen:
            errors.append(duplicate(where, ""))
        seen.append(said)
    return errors


def _label(requirement: TopologySelectorLabelRequirement, path: str) -> list[FieldError]:
    values = requirement.values
    errors = [] if values else [required(f"{path}.values")]
    errors += [
        duplicate(f"{path}.values[{index}]", value) for index, value in enumerate(values) if value in values[:index]
    ]
    return errors + [invalid(f"{path}.key", requirement.key, text) for text in names.qualified(requirement.key)]


def validate_class_update(new: StorageClass, old: StorageClass) -> list[FieldError]:
    errors = [
        forbidden(name, f"updates to {name} are forbidden.")
        for name, after, before in (
            ("parameters", new.parameters, old.parameters),
            ("provisioner", new.provisioner, old.provisioner),
            ("reclaimPolicy", new.reclaim_policy, old.reclaim_policy),
        )
        if after != before
    ]
    return errors + immutable(new.volume_binding_mode, old.volume_binding_mode, "volumeBindingMode")


def validate_runtime_class(runtime: RuntimeClass) -> list[FieldError]:
    errors = [invalid("handler", runtime.handler, text) for text in names.dns_label(runtime.handler)]
    if runtime.overhead is not None:
        errors += validate_overhead(runtime.overhead.pod_fixed, "overhead")
    if runtime.scheduling is not None:
        errors += validate_labels(runtime.scheduling.node_selector, "scheduling.nodeSelector")
        errors += _tolerations(runtime.scheduling.tolerations, "scheduling.tolerations")
    return errors


def _tolerations(tolerations: tuple[Toleration, ...], path: str) -> list[FieldError]:
    """Each taint is tolerated once, for however long."""
    errors = validate_tolerations(tolerations, path)
    seen: set[Toleration] = set()
    for index, toleration in enumerate(tolerations):
        key = replace(toleration, toleration_seconds=None)
        if key in seen:
            shown = {
                "Key": toleration.key,
                "Operator": toleration.operator,
                "Value": toleration.value,
                "Effect": toleration.effect,
                "TolerationSeconds": toleration.toleration_seconds,
            }
            errors.append(duplicate(f"{path}[{index}]", shown))
        seen.add(key)
    return errors


def validate_runtime_class_update(new: RuntimeClass, old: RuntimeClass) -> list[FieldError]:
    return immutable(new.handler, old.handler, "handler")


RULES: dict[type[Object], Rules] = {
    PersistentVolumeClaim: Rules(
        create=validate_claim, update=validate_claim_update, status=validate_claim_status, metadata="both"
    ),
    PersistentVolume: Rules(create=validate_volume, update=validate_volume_update, metadata="new"),
    StorageClass: Rules(create=validate_class, update=validate_class_update, new_first=True),
    CSIDriver: Rules(create=validate_driver, update=validate_driver_update),
    CSINode: Rules(create=validate_csi_node, update=validate_csi_node_update, new_first=True),
    RuntimeClass: Rules(create=validate_runtime_class, update=validate_runtime_class_update, new_first=True),
}
