"""Metadata common to every object, and the options that travel with requests."""

from typing import Annotated, Any, ClassVar

from msgspec import field

from podfit.api.meta.base import SET, Struct, Time, always, keyed


class ManagedFieldsEntry(Struct):
    api_version: str = ""
    fields_type: str = ""
    fields_v1: dict[str, Any] | None = None
    manager: str = ""
    operation: str = ""
    subresource: str = ""
    time: Time | None = None


class OwnerReference(Struct):
    whole: ClassVar[bool] = True
    name: str = always(default="")
    api_version: str = always(default="")
    block_owner_deletion: bool | None = None
    controller: bool | None = None
    kind: str = always(default="")
    uid: str = always(default="")


class ObjectMeta(Struct):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    owner_references: Annotated[tuple[OwnerReference, ...], keyed("uid")] = ()
    finalizers: Annotated[tuple[str, ...], SET] = ()
    managed_fields: tuple[ManagedFieldsEntry, ...] = ()
    self_link: str = ""


class ListMeta(Struct):
    resource_version: str = ""
    continue_: str = field(default="", name="continue")
    remaining_item_count: int | None = None
    self_link: str = ""


class LabelSelectorRequirement(Struct):
    key: str = always(default="")
    operator: str = always(default="")
    values: tuple[str, ...] = ()


class FieldSelectorRequirement(Struct):
    key: str = always(default="")
    operator: str = always(default="")
    values: tuple[str, ...] = ()


class LabelSelector(Struct):
    whole: ClassVar[bool] = True
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()
    match_labels: dict[str, str] = field(default_factory=dict)


class Preconditions(Struct):
    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(Struct):
    api_version: str = ""
    dry_run: tuple[str, ...] = ()
    grace_period_seconds: int | None = None
    ignore_store_read_error_with_cluster_breaking_potential: bool | None = None
    kind: str = ""
    orphan_dependents: bool | None = None
    preconditions: Preconditions | None = None
    propagation_policy: str = ""


class Condition(Struct):
    type: str = always(default="")
    last_transition_time: Time | None = always(default=None)
    message: str = always(default="")
    observed_generation: int = 0
    reason: str = always(default="")
    status: str = always(default="")
