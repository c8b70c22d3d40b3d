"""The scale of a controller: its number of pods, read and written without knowing what kind of controller it is.

A scale is a view of a stored object. Reading derives it; writing changes the number in the object, by the strategy of
its kind for `scale`, so that generation, validation and admission are those of any other change. Who owns the number is
translated both ways: in the view an owner of `spec.replicas` owns it of the scale.
"""

from typing import Any

import msgspec
import msgspec.structs
from msgspec.structs import replace

from podfit.api.autoscaling.v1.types import Scale, ScaleSpec, ScaleStatus
from podfit.api.core.v1.replication.columns import pairs
from podfit.api.core.v1.replication.types import ReplicationController
from podfit.api.kinds.scale import SCALE_INFO
from podfit.api.meta import codec, selectors
from podfit.api.meta.base import Object
from podfit.api.meta.resource_info import ResourceInfo
from podfit.api.meta.v1.types import ManagedFieldsEntry, ObjectMeta
from podfit.api.meta.validation import names
from podfit.api.meta.validation.metadata import nonnegative, validate_meta
from podfit.api.structural.custom import Custom, is_custom
from podfit.apiserver.admission.chain import AdmissionChain
from podfit.apiserver.context import Context
from podfit.apiserver.handlers.answers import formed, object_response
from podfit.apiserver.handlers.apply import application_of
from podfit.apiserver.handlers.change import CHANGE, check_place, check_uid
from podfit.apiserver.handlers.patching import APPLY_PATCH, Make, PatchedObject, patcher
from podfit.apiserver.handlers.writing import Step, Steps, Write, carried_out
from podfit.apiserver.registry import stored
from podfit.apiserver.registry.apply.managed import APPLY, Entries, in_order, same_manager
from podfit.apiserver.registry.apply.sets import Tree, common, union, without
from podfit.apiserver.registry.custom_scale import custom_scale, replicas_tree, rescaled
from podfit.apiserver.registry.stored import Stored
from podfit.apiserver.request.bodies import media_type, read_object, typed_object
from podfit.apiserver.request.representations import check_representation, wanted_representation
from podfit.apiserver.request.request_info import RequestInfo
from podfit.core.errors import conflict
from podfit.core.fields import refusal
from podfit.decide.write_stages import Stage
from podfit.net.wire import Identity, Request, Response
from podfit.store.protocol import Record

_REPLICAS: Tree = {"f:spec": {"f:replicas": {}}}


async def scale(
    context: Context, chain: AdmissionChain, request_info: RequestInfo, request: Request, identity: Identity
) -> Response:
    """Read or write it, by the verb of the request."""
    info = request_info.info
    assert info is not None
    representation = wanted_representation(request, request_info)
    check_representation(representation, SCALE_INFO, of_list=False)
    if request_info.verb == "get":
        record = await Stored[Object](context.store, info).record(request_info.namespace, request_info.name)
        answer = object_response(scale_of(stored.decoded(info, record)))
    else:
        write = Write.of("UPDATE", context, chain, request_info, request, identity)
        answer = _shown(info, await carried_out(write, SCALE))
    return formed(context, msgspec.structs.replace(request_info, info=SCALE_INFO), request, representation, answer)


def scale_of(obj: Any) -> Scale:
    """The view of a controller."""
    meta = obj.metadata
    named = ObjectMeta(
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        resource_version=meta.resource_version,
        creation_timestamp=meta.creation_timestamp,
    )
    if isinstance(obj, Custom):
        return custom_scale(obj, named)
    labels = obj.spec.selector
    selector = (pairs(labels) if labels else "") if isinstance(obj, ReplicationController) else selectors.text(labels)
    status = ScaleStatus(replicas=obj.status.replicas, selector=selector)
    return Scale(metadata=named, spec=ScaleSpec(replicas=obj.spec.replicas or 0), status=status)


def _shown(info: ResourceInfo, written: Response) -> Response:
    assert isinstance(written.body, bytes)
    obj = codec.decode(written.body, info.type)
    return Response(written.status, written.headers, object_response(scale_of(obj)).body)


def _read(write: Write) -> None:
    """What the request makes of the controller itself, whose number of pods it says."""
    write.make = _maker(write.context, write.info, write.request_info, write.request)


SCALE: Steps = (Step(Stage.DECODE, _read), CHANGE)


def _maker(context: Context, info: ResourceInfo, request_info: RequestInfo, request: Request) -> Make:
    if request.method == "PATCH" and media_type(request) == APPLY_PATCH:
        application = application_of(context, SCALE_INFO, request_info, request)

        def applied(record: Record) -> PatchedObject:
            old = stored.decoded(info, record)
            made = application.to(SCALE_INFO, codec.to_dict(scale_of(old)), _seen(info, old.metadata.managed_fields))
            wanted = typed_object(made.document, Scale)
            entries = _translated(info, old.metadata.managed_fields, made.entries)
            return _rescaled(info, old, wanted, PatchedObject(wanted, application.warnings, entries=entries))

        return applied
    if request.method == "PATCH":
        make = patcher(context, SCALE_INFO, request, lambda record: _document(info, record))
    else:
        given = PatchedObject(*read_object(request, SCALE_INFO))
        check_place(request_info, given.obj.metadata)
        make = lambda _: given  # noqa: E731  (the other branch names it likewise)

    def changed(record: Record) -> PatchedObject:
        wanted, old = make(record), stored.decoded(info, record)
        if request.method == "PUT":
            check_uid(info, request_info, wanted.obj.metadata, old.metadata)
        return _rescaled(info, old, wanted.obj, wanted)

    return changed


def _document(info: ResourceInfo, record: Record) -> Any:
    return msgspec.json.decode(codec.encode(scale_of(stored.decoded(info, record))))


def _rescaled(info: ResourceInfo, old: Any, scale: Scale, wanted: PatchedObject) -> PatchedObject:
    """The controller with the scale's number, and what the client says of its identity. Raises 422, and 409 for the
    scale of another object."""
    seen = scale.metadata
    placed = replace(seen, namespace=seen.namespace or old.metadata.namespace)
    errors = validate_meta(placed, namespaced=True, name_rule=names.dns_subdomain)
    if errors := errors + nonnegative(scale.spec.replicas, "spec.replicas"):
        raise refusal("Scale", old.metadata.name, errors, group="autoscaling")
    if seen.uid and seen.uid != old.metadata.uid:
        text = f"Precondition failed: UID in precondition: {seen.uid}, UID in object meta: {old.metadata.uid}"
        raise conflict(f"{info.resource}/scale", old.metadata.name, text, group=info.group)
    meta = replace(
        old.metadata, name=seen.name, namespace=seen.namespace, resource_version=seen.resource_version, uid=seen.uid
    )
    if isinstance(old, Custom):
        obj: Any = replace(rescaled(old, scale.spec.replicas), metadata=meta)
    else:
        obj = replace(old, metadata=meta, spec=replace(old.spec, replicas=scale.spec.replicas))
    return msgspec.structs.replace(wanted, obj=obj)


def _place(info: ResourceInfo) -> Tree:
    """The number of pods where the kind has it."""
    declared = info.type.declared.scale if is_custom(info.type) else None
    return replicas_tree(declared) if declared is not None else _REPLICAS


def _owns(info: ResourceInfo, entry: ManagedFieldsEntry) -> bool:
    return bool(common(entry.fields_v1 or {}, _place(info)))


def _seen(info: ResourceInfo, entries: Entries) -> Entries:
    """Who owns the number of pods, as owners of fields of the scale."""
    version = SCALE_INFO.group_version
    return tuple(replace(entry, fields_v1=_REPLICAS, api_version=version) for entry in entries if _owns(info, entry))


def _translated(info: ResourceInfo, before: Entries, scaled: Entries) -> Entries:
    """The controller's owners after the owners of its scale have become these."""
    kept, place = [], _place(info)
    for entry in before:
        still = any(same_manager(entry, scale_entry) for scale_entry in scaled)
        fields = entry.fields_v1 or {}
        fields = union(fields, place) if still else without(fields, place)
        if fields:
            kept.append(entry if fields == entry.fields_v1 else replace(entry, fields_v1=fields))
    for scale_entry in scaled:
        if not any(same_manager(scale_entry, other) for other in before):
            time = (
                None if scale_entry.operation == APPLY else scale_entry.time
            )  # upstream does not date who applies a scale
            kept.append(replace(scale_entry, fields_v1=place, api_version=info.group_version, time=time))
    return in_order(kept)
