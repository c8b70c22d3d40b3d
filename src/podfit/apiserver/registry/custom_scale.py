"""The scale of a custom resource, by the paths that its definition names."""

from typing import Any

from msgspec.structs import replace

from podfit.api.apiextensions.v1.types import CustomResourceSubresourceScale
from podfit.api.autoscaling.v1.types import Scale, ScaleSpec, ScaleStatus
from podfit.api.meta.v1.types import ObjectMeta
from podfit.api.structural.custom import Custom
from podfit.api.structural.jsonpath import led_to
from podfit.apiserver.registry.apply.sets import Tree
from podfit.core.errors import ApiError


def custom_scale(obj: Custom, meta: ObjectMeta) -> Scale:
    """The view of the object. Raises 404 when it says nothing of replicas."""
    paths = _paths(obj)
    wanted = _number(obj, paths.spec_replicas_path)
    if wanted is None:
        raise ApiError(404, "NotFound", f'the spec replicas field "{paths.spec_replicas_path}" does not exist', {})
    selector = led_to(obj.rest, paths.label_selector_path) if paths.label_selector_path else []
    status = ScaleStatus(
        replicas=_number(obj, paths.status_replicas_path) or 0,
        selector=selector[0] if selector and isinstance(selector[0], str) else "",
    )
    return Scale(metadata=meta, spec=ScaleSpec(replicas=wanted), status=status)


def rescaled(obj: Custom, replicas: int) -> Custom:
    """The object with this number of replicas."""
    return replace(obj, rest=_placed(obj.rest, _steps(_paths(obj).spec_replicas_path), replicas))


def only_rescaled(new: Custom, old: Custom) -> Custom:
    """The old object with the number of replicas of the new one."""
    wanted = _number(new, _paths(old).spec_replicas_path)
    return old if wanted is None else rescaled(old, wanted)


def replicas_tree(scale: CustomResourceSubresourceScale) -> Tree:
    """The number of replicas as a set of fields."""
    tree: Tree = {}
    for step in reversed(_steps(scale.spec_replicas_path)):
        tree = {f"f:{step}": tree}
    return tree


def _paths(obj: Custom) -> CustomResourceSubresourceScale:
    assert obj.declared.scale is not None
    return obj.declared.scale


def _steps(path: str) -> list[str]:
    return path.split(".")[1:]


def _number(obj: Custom, path: str) -> int | None:
    found = led_to(obj.rest, path)
    return found[0] if found and isinstance(found[0], int) and not isinstance(found[0], bool) else None


def _placed(value: object, steps: list[str], number: int) -> Any:
    if not steps:
        return number
    inner = value if isinstance(value, dict) else {}
    return {**inner, steps[0]: _placed(inner.get(steps[0]), steps[1:], number)}
