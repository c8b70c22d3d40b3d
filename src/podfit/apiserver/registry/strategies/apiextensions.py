"""The strategy of definitions of custom kinds: the versions that were ever stored are kept, and objects go first."""

from msgspec.structs import replace

from podfit.api.apiextensions.v1.types import (
    CLEANUP,
    TERMINATING,
    CustomResourceDefinition,
    CustomResourceDefinitionCondition,
    CustomResourceDefinitionStatus,
    storage_version,
)
from podfit.api.meta.base import Object
from podfit.api.meta.resource_info import ResourceInfo
from podfit.apiserver.registry.strategies.strategy import (
    DeleteStrategy,
    Strategy,
    UpdateStrategy,
    check_before_contents,
)
from podfit.core.features import FeatureGates

_Definition = CustomResourceDefinition


def _new(_info: ResourceInfo, obj: _Definition, _gates: FeatureGates) -> _Definition:
    stored = CustomResourceDefinitionStatus(stored_versions=tuple(filter(None, (storage_version(obj),))))
    return replace(obj, metadata=replace(obj.metadata, generation=1), status=stored)


def _changed(_info: ResourceInfo, new: _Definition, old: _Definition, _gates: FeatureGates) -> _Definition:
    kept, name = old.status, storage_version(new)
    if name and name not in kept.stored_versions:
        kept = replace(kept, stored_versions=(*kept.stored_versions, name))
    generation = old.metadata.generation + (new.spec != old.spec)
    return replace(new, metadata=replace(new.metadata, generation=generation), status=kept)


def _marked(definition: _Definition) -> _Definition:
    """A definition waits for its objects, and says so."""
    meta = definition.metadata
    condition = CustomResourceDefinitionCondition(
        type=TERMINATING,
        status="True",
        reason="InstanceDeletionInProgress",
        message="CustomResource deletion is in progress",
        last_transition_time=meta.deletion_timestamp,
    )
    others = [other for other in definition.status.conditions or () if other.type != TERMINATING]
    return replace(
        definition,
        metadata=replace(meta, finalizers=tuple(dict.fromkeys((*meta.finalizers, CLEANUP)))),
        status=replace(definition.status, conditions=(*others, condition)),
    )


def _has_objects(definition: _Definition) -> bool:
    """Until it is marked nobody has taken its objects away."""
    return not definition.metadata.deletion_timestamp


STRATEGIES: dict[type[Object], Strategy] = {
    CustomResourceDefinition: Strategy(
        prepare_create=_new,
        update=UpdateStrategy(prepare=_changed),
        delete=DeleteStrategy(preconditions=check_before_contents, mark=_marked, held=_has_objects),
    )
}
