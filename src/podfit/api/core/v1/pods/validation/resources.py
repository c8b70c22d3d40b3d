"""Resources of containers and of the pod as a whole, and resize policies."""

from collections.abc import Callable, Collection

from podfit.api.core.v1.pods.aggregate import aggregate, limits_of, requests_of
from podfit.api.core.v1.pods.containers import ContainerResizePolicy, ResourceClaim, ResourceRequirements
from podfit.api.core.v1.pods.types import PodSpec
from podfit.api.meta.base import ResourceList
from podfit.api.meta.validation import names
from podfit.api.meta.verdict_cache import passed
from podfit.core.fields import FieldError, duplicate, forbidden, invalid, missing, required, unsupported
from podfit.core.quantity import ZERO, Quantity
from podfit.core.resources import CPU, HUGEPAGES, MEMORY, is_extended, is_native, overcommittable
from podfit.core.resources import pod_level as is_pod_level

OF_CONTAINERS = (CPU, MEMORY, "ephemeral-storage")
_COUNTED = (
    "pods",
    "services",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
)
_STANDARD = (
    *OF_CONTAINERS,
    *_COUNTED,
    "storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
)
RESIZE_RESOURCES = (CPU, MEMORY)
RESIZE_POLICIES = ("NotRequired", "RestartContainer")
NameCheck = Callable[[str, str], list[FieldError]]


def resource_name(name: str, path: str) -> list[FieldError]:
    """Any resource: of Kubernetes itself, or with a domain."""
    if problems := [invalid(path, name, text) for text in names.qualified(name)]:
        return problems
    if "/" not in name and name not in _STANDARD and not name.startswith((HUGEPAGES, f"requests.{HUGEPAGES}")):
        return [invalid(path, name, "must be a standard resource type or fully qualified")]
    return []


def container_resource_name(name: str, path: str) -> list[FieldError]:
    if name in OF_CONTAINERS:
        return []
    errors = resource_name(name, path)
    if "/" not in name:
        if name not in OF_CONTAINERS and not name.startswith(HUGEPAGES):
            errors.append(invalid(path, name, "must be a standard resource for containers"))
    elif not is_native(name) and not is_extended(name):
        errors.append(invalid(path, name, "doesn't follow extended resource name standard"))
    return errors


def _pod_resource_name(name: str, path: str) -> list[FieldError]:
    if errors := resource_name(name, path):
        return errors
    return [] if is_pod_level(name) else [unsupported(path, name, (CPU, HUGEPAGES, MEMORY))]


def amount(name: str, quantity: Quantity, path: str) -> list[FieldError]:
    """Not negative, and whole where the thing cannot be divided."""
    errors = nonnegative_amount(quantity, path)
    if (name in _COUNTED or is_extended(name)) and not quantity.is_integer():
        errors.append(invalid(path, quantity, "must be an integer"))
    return errors


def nonnegative_amount(quantity: Quantity, path: str) -> list[FieldError]:
    return [invalid(path, quantity, "must be greater than or equal to 0")] if quantity < ZERO else []


def validate_container_resources(
    resources: ResourceRequirements, claims: Collection[str], path: str
) -> list[FieldError]:
    return _of_container(resources, path) + _claims(resources.claims, claims, f"{path}.claims")


@passed
def _of_container(resources: ResourceRequirements, path: str) -> list[FieldError]:
    return _requirements(resources, path, container_resource_name)


def _requirements(resources: ResourceRequirements, path: str, name_check: NameCheck) -> list[FieldError]:
    """All but the claims, which depend on the pod."""
    errors = _amounts(resources.limits, f"{path}.limits", name_check)
    for name, requested in sorted(resources.requests.items()):
        key = f"{path}.requests[{name}]"
        errors += name_check(name, key) + amount(name, requested, key)
        errors += _within_limit(name, requested, resources.limits, path) + _pages(name, requested, key)
    named = resources.limits.keys() | resources.requests.keys()
    if any(name.startswith(HUGEPAGES) for name in named) and not named & {CPU, MEMORY}:
        errors.append(forbidden(path, "HugePages require cpu or memory"))
    return errors


def _amounts(resources: ResourceList, path: str, name_check: NameCheck) -> list[FieldError]:
    errors = []
    for name, quantity in sorted(resources.items()):
        key = f"{path}[{name}]"
        errors += name_check(name, key) + amount(name, quantity, key) + _pages(name, quantity, key)
    return errors


def _pages(name: str, quantity: Quantity, path: str) -> list[FieldError]:
    if not name.startswith(HUGEPAGES) or _whole_pages(name, quantity):
        return []
    return [invalid(path, quantity, f"{quantity} is not positive integer multiple of {name}")]


def _whole_pages(name: str, quantity: Quantity) -> bool:
    try:
        page = Quantity.parse(name.removeprefix(HUGEPAGES))
    except ValueError:
        return False
    return page > ZERO and page.is_integer() and quantity.nano % page.nano == 0


def _within_limit(name: str, requested: Quantity, limits: ResourceList, path: str) -> list[FieldError]:
    limit = limits.get(name)
    if limit is None:
        if overcommittable(name):
            return []
        return [required(f"{path}.limits", "Limit must be set for non overcommitable resources")]
    if not overcommittable(name) and requested != limit:
        return [invalid(f"{path}.requests", requested, f"must be equal to {name} limit of {limit}")]
    if requested > limit:
        return [invalid(f"{path}.requests", requested, f"must be less than or equal to {name} limit of {limit}")]
    return []


def _claims(used: tuple[ResourceClaim, ...], known: Collection[str], path: str) -> list[FieldError]:
    """A claim is used as a whole once, or each of its requests once."""
    errors = []
    seen: set[str] = set()
    by_request: dict[str, int] = {}
    for index, claim in enumerate(used):
        where = f"{path}[{index}]"
        if not claim.name:
            errors.append(required(where))
            continue
        if claim.name in seen:
            errors.append(duplicate(where, claim.name))
        else:
            key = f"{claim.name}/{claim.request}" if claim.request else claim.name
            if claim.request:
                problems = names.dns_label(claim.request)
                errors += [invalid(f"{where}.request", claim.request, text) for text in problems]
            if key in seen:
                errors.append(duplicate(where, key))
            elif not claim.request:
                errors += [duplicate(where, claim.name)] * by_request.get(claim.name, 0)
            if claim.request and key not in seen:
                by_request[claim.name] = by_request.get(claim.name, 0) + 1
            seen.add(key)
        if claim.name not in known:
            which = f": {', '.join(sorted(known))}" if known else " which is empty"
            errors.append(missing(where, claim.name, f"must be one of the names in pod.spec.resourceClaims{which}"))
    return errors


def validate_pod_resources(spec: PodSpec, claims: Collection[str], path: str) -> list[FieldError]:
    """`spec.resources` in itself and against the containers."""
    level = spec.resources
    if level is None:
        return []
    if spec.os is not None and spec.os.name == "windows":
        return [forbidden(path, "may not be set for a windows pod")]
    errors = []
    if level.claims:
        errors.append(forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level"))
    errors += _requirements(level, path, _pod_resource_name) + _claims(level.claims, claims, f"{path}.claims")
    errors += _covers(level.requests, aggregate(spec, requests_of), f"{path}.requests", "requests")
    pages = {name: total for name, total in aggregate(spec, limits_of).items() if name.startswith(HUGEPAGES)}
    errors += _covers(level.limits, pages, f"{path}.limits", "limits")
    for index, container in enumerate(spec.containers):
        for name, limit in sorted(container.resources.limits.items()):
            allowed = level.limits.get(name)
            if allowed is not None and limit > allowed:
                text = f"must be less than or equal to pod limits of {allowed}"
                errors.append(invalid(f"{path}.containers[{index}][{name}].limits", limit, text))
    return errors


def _covers(level: ResourceList, total: ResourceList, path: str, side: str) -> list[FieldError]:
    text = f"must be greater than or equal to aggregate container {side} of"
    return [
        invalid(f"{path}[{name}]", level[name], f"{text} {need}")
        for name, need in sorted(total.items())
        if name in level and level[name] < need
    ]


def validate_resize_policy(
    policies: tuple[ContainerResizePolicy, ...], path: str, pod_restart_policy: str
) -> list[FieldError]:
    """The path is the list's, but for duplicates."""
    errors = []
    seen: set[str] = set()
    for index, policy in enumerate(policies):
        if policy.resource_name in seen:
            errors.append(duplicate(f"{path}[{index}]", policy.resource_name))
        seen.add(policy.resource_name)
        errors += _one_of(policy.resource_name, RESIZE_RESOURCES, path)
        errors += _one_of(policy.restart_policy, RESIZE_POLICIES, path)
        if pod_restart_policy == "Never" and policy.restart_policy != "NotRequired":
            text = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            errors.append(invalid(path, policy.restart_policy, text))
    return errors


def _one_of(value: str, supported: tuple[str, ...], path: str) -> list[FieldError]:
    if not value:
        return [required(path)]
    return [] if value in supported else [unsupported(path, value, supported)]


def validate_overhead(overhead: ResourceList, path: str) -> list[FieldError]:
    """An overhead is what limits are, and looked at as such."""
    return _of_container(ResourceRequirements(limits=overhead), path) if overhead else []
