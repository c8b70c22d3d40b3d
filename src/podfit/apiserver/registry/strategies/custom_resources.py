"""The strategy of custom resources."""

from msgspec.structs import replace

from podfit.api.meta.resource_info import ResourceInfo
from podfit.api.structural.custom import Custom
from podfit.apiserver.registry.custom_scale import only_rescaled
from podfit.apiserver.registry.strategies.strategy import Strategy, UpdateStrategy, status_errors
from podfit.core.features import FeatureGates


def _new(info: ResourceInfo, obj: Custom, _gates: FeatureGates) -> Custom:
    rest = {name: value for name, value in obj.rest.items() if name != "status" or not info.has_status}
    return replace(obj, metadata=replace(obj.metadata, generation=1), rest=rest)


def _changed(_info: ResourceInfo, new: Custom, old: Custom, _gates: FeatureGates) -> Custom:
    """Where the status is written apart it stays; whatever else changes is a new generation."""
    rest = new.rest
    if new.declared.has_status:
        kept = {name: value for name, value in old.rest.items() if name == "status"}
        rest = {name: value for name, value in rest.items() if name != "status"} | kept
    generation = old.metadata.generation + (rest != old.rest)
    return replace(new, metadata=replace(new.metadata, generation=generation), rest=rest)


def _scale(info: ResourceInfo, new: Custom, old: Custom, gates: FeatureGates) -> Custom:
    kept = replace(old.metadata, managed_fields=new.metadata.managed_fields)
    return _changed(info, replace(only_rescaled(new, old), metadata=kept), old, gates)


def _status(_info: ResourceInfo, new: Custom, old: Custom, _gates: FeatureGates) -> Custom:
    rest = {name: value for name, value in old.rest.items() if name != "status"}
    rest |= {name: value for name, value in new.rest.items() if name == "status"}
    return replace(old, metadata=replace(old.metadata, managed_fields=new.metadata.managed_fields), rest=rest)


STRATEGY = Strategy(
    prepare_create=_new,
    update=UpdateStrategy(prepare=_changed),
    subresources={
        "status": UpdateStrategy(prepare=_status, validate=status_errors),
        "scale": UpdateStrategy(prepare=_scale),
    },
)
