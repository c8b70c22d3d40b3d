"""`Strategy`: the rules by which objects of a kind are created, updated and deleted; and the default one."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec.structs import replace

from podfit.api import validation
from podfit.api.meta.base import Object
from podfit.api.meta.resource_info import ResourceInfo
from podfit.api.meta.v1.types import DeleteOptions, ObjectMeta, Preconditions
from podfit.apiserver.registry.apply.sets import Tree
from podfit.apiserver.request.legacy_options import Legacy
from podfit.core.errors import conflict
from podfit.core.features import FeatureGates
from podfit.core.fields import FieldError
from podfit.decide.write_stages import Stage
from podfit.net.wire import Identity


def new_object(info: ResourceInfo, obj: Any, _gates: FeatureGates) -> Any:
    """A new object as it will be stored; the status is for whoever runs it to write."""
    if info.counted is not None:
        obj = replace(obj, metadata=replace(obj.metadata, generation=info.first_generation))
    return replace(obj, status=type(obj.status)()) if info.has_status else obj


def changed_object(info: ResourceInfo, new: Any, old: Any, _gates: FeatureGates) -> Any:
    """All but the status, which is written apart; the generation counts changes of what it is about."""
    if info.has_status:
        new = replace(new, status=old.status)
    if info.counted is None:
        return new
    generation = old.metadata.generation + (info.counted(new) != info.counted(old))
    return replace(new, metadata=replace(new.metadata, generation=generation))


def changed_status(_info: ResourceInfo, new: Any, old: Any, _gates: FeatureGates) -> Any:
    """The status, and of the metadata all but the owners."""
    kept = replace(new.metadata, owner_references=old.metadata.owner_references)
    return replace(new, metadata=kept, spec=old.spec)


def changed_scale(info: ResourceInfo, new: Any, old: Any, gates: FeatureGates) -> Any:
    """The number of pods and nothing else."""
    kept = replace(old.metadata, managed_fields=new.metadata.managed_fields)
    spec = replace(old.spec, replicas=new.spec.replicas)
    return changed_object(info, replace(old, metadata=kept, spec=spec), old, gates)


def status_errors(new: Object, old: Object, _gates: FeatureGates) -> list[FieldError]:
    return validation.validate_status(new, old)


class UpdateStrategy(msgspec.Struct, frozen=True, kw_only=True):
    """What a write through a resource or one of its subresources does.

    `prepare(info, new, old, gates)` keeps of a new object what may be changed here; `validate(new, old, gates)` names
    what is wrong with it.
    """

    prepare: Callable[[ResourceInfo, Any, Any, FeatureGates], Any] = changed_object
    validate: Callable[[Any, Any, FeatureGates], list[FieldError]] = validation.validate_update
    writes_dropped: bool = False
    """Whether a request is written even when all that it asked for was dropped; upstream does so for resize."""
    order: tuple[Stage, ...] = ()
    """The stages in the order in which they are to come, where the checks of a write here are a list of their own."""


class DeleteStrategy(msgspec.Struct, frozen=True, kw_only=True):
    """How objects of a kind end."""

    grace: Callable[[Any, DeleteOptions], int] = lambda _obj, _options: 0
    """Seconds that an object may take to end."""
    preconditions: Callable[[ResourceInfo, ObjectMeta, Preconditions], None] = lambda _info, _meta, _wanted: None
    """Raises 409 in words of the kind's own, before the usual ones."""
    mark: Callable[[Any], Any] = lambda obj: obj
    """What else changes in an object that is marked as being deleted."""
    held: Callable[[Any], bool] = lambda _obj: False
    """Whether something besides the finalizers of its metadata has to happen before the object may go."""
    propagates: bool = True
    """Whether a deletion may wait for dependents."""
    warnings: Callable[[DeleteOptions], tuple[str, ...]] = lambda _options: ()
    answered_with_object: bool = False
    """Whether the answer is the object that went, and not a Status."""
    shown_as_marked: bool = False
    """Whether an object that goes at once is shown as marked, without any grace."""


class Strategy(msgspec.Struct, frozen=True, kw_only=True):
    """A kind's answers to the generic handlers."""

    prepare_create: Callable[[ResourceInfo, Any, FeatureGates], Any] = new_object
    """A new object as it will be stored, before and again after admission changed it."""
    complete: Callable[[Any, Identity], tuple[Any, Sequence[str]]] = lambda obj, _identity: (obj, ())
    """After admission: what the server adds or drops, and the warnings about it."""
    validate_create: Callable[[Any, FeatureGates], list[FieldError]] = validation.validate_create
    unsupported_fields: Callable[[Any, bool], Sequence[str]] = lambda _obj, _routed: ()
    """Warnings of a new object about what podfit's own nodes do not do; whether their pods have a network of their own,
    to which Services lead.
    """
    update: UpdateStrategy = UpdateStrategy()
    subresources: Mapping[str, UpdateStrategy] = MappingProxyType({})
    """Those that have a strategy of their own, beside `scale` and `status`."""
    delete: DeleteStrategy = DeleteStrategy()
    resets: Mapping[str, Tree] = MappingProxyType({})
    """By subresource, the fields that it does not write, so that nobody comes to own them through it; of those that are
    not named here it is the spec through `status`, and the status through all others."""
    legacy_subresource: Callable[[Legacy, Any, Any], str] = lambda _legacy, _new, _old: ""
    """The subresource whose rules a write of the object itself is judged by in the legacy mode."""
    without_echo: Callable[[Legacy, Any, Any], Any] = lambda _legacy, new, _old: new
    """The object without what a client of the legacy mode read and sends back."""

    def reset_fields(self, info: ResourceInfo, subresource: str) -> Tree:
        """What an apply through this subresource cannot come to own."""
        if subresource in self.resets:
            return self.resets[subresource]
        if subresource == "status":
            return {"f:spec": {}}
        return {"f:status": {}} if info.has_status else {}

    def for_update(self, subresource: str) -> UpdateStrategy:
        if not subresource:
            return self.update
        return self.subresources.get(subresource) or _SUBRESOURCES.get(subresource, self.update)


_SUBRESOURCES = {
    "status": UpdateStrategy(prepare=changed_status, validate=status_errors),
    "scale": UpdateStrategy(prepare=changed_scale),
}


def check_before_contents(info: ResourceInfo, meta: ObjectMeta, wanted: Preconditions) -> None:
    """Looked at by rules of their own, with other words. Raises 409."""
    for name, asked, known in (
        ("UID", wanted.uid, meta.uid),
        ("ResourceVersion", wanted.resource_version, meta.resource_version),
    ):
        if asked is not None and asked != known:
            text = f"Precondition failed: {name} in precondition: {asked}, {name} in object meta: {known}"
            raise conflict(info.resource, meta.name, text, group=info.group)
