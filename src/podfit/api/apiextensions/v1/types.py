"""apiextensions.k8s.io/v1: CustomResourceDefinition and its parts.

A schema is a Struct like any other, so its own fields are checked, explained and patched as those of built-in kinds.
`api.structural` gives it meaning for the objects that it describes.
"""

from typing import Annotated, Any, TypeAlias

from msgspec import field

from podfit.api.meta.base import ATOMIC, Named, Object, Struct, Time, always, keyed
from podfit.api.meta.v1.types import ObjectMeta

GROUP = "apiextensions.k8s.io"
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
"""The finalizer of a definition that is being deleted: its objects go first."""
NAMES_ACCEPTED, ESTABLISHED, TERMINATING = "NamesAccepted", "Established", "Terminating"

Json: TypeAlias = Annotated[Any, Named("JSON")]


class ExternalDocumentation(Struct):
    description: str = ""
    url: str = ""


class ValidationRule(Struct):
    rule: str = always(default="")
    message: str = ""
    message_expression: str = ""
    reason: str | None = None
    field_path: str = ""
    optional_old_self: bool | None = None


class JSONSchemaProps(Struct):
    """A node of a schema. `default` is None where there is none: a null is no default here."""

    id: str = ""
    schema: str = field(default="", name="$schema")
    ref: str | None = field(default=None, name="$ref")
    description: str = ""
    type: str = ""
    format: str = ""
    title: str = ""
    default: Json = None
    maximum: int | float | None = None
    exclusive_maximum: bool = False
    minimum: int | float | None = None
    exclusive_minimum: bool = False
    max_length: int | None = None
    min_length: int | None = None
    pattern: str = ""
    max_items: int | None = None
    min_items: int | None = None
    unique_items: bool = False
    multiple_of: int | float | None = None
    enum: Annotated[tuple[Json, ...], ATOMIC] = ()
    max_properties: int | None = None
    min_properties: int | None = None
    required: Annotated[tuple[str, ...], ATOMIC] = ()
    items: "Annotated[JSONSchemaProps | None, Named('JSONSchemaPropsOrArray')]" = None
    all_of: "Annotated[tuple[JSONSchemaProps, ...], ATOMIC]" = ()
    one_of: "Annotated[tuple[JSONSchemaProps, ...], ATOMIC]" = ()
    any_of: "Annotated[tuple[JSONSchemaProps, ...], ATOMIC]" = ()
    not_: "JSONSchemaProps | None" = field(default=None, name="not")
    properties: "dict[str, JSONSchemaProps]" = field(default_factory=dict)
    additional_properties: "Annotated[JSONSchemaProps | bool | None, Named('JSONSchemaPropsOrBool')]" = None
    pattern_properties: "dict[str, JSONSchemaProps]" = field(default_factory=dict)
    dependencies: dict[str, Annotated[Any, Named("JSONSchemaPropsOrStringArray")]] = field(default_factory=dict)
    additional_items: Annotated[Any, Named("JSONSchemaPropsOrBool")] = None
    definitions: "dict[str, JSONSchemaProps]" = field(default_factory=dict)
    external_docs: ExternalDocumentation | None = None
    example: Json = None
    nullable: bool = False
    preserve_unknown_fields: bool | None = field(default=None, name="x-kubernetes-preserve-unknown-fields")
    embedded_resource: bool = field(default=False, name="x-kubernetes-embedded-resource")
    int_or_string: bool = field(default=False, name="x-kubernetes-int-or-string")
    list_map_keys: Annotated[tuple[str, ...], ATOMIC] = field(default=(), name="x-kubernetes-list-map-keys")
    list_type: str | None = field(default=None, name="x-kubernetes-list-type")
    map_type: str | None = field(default=None, name="x-kubernetes-map-type")
    validations: Annotated[tuple[ValidationRule, ...], keyed("rule")] = field(
        default=(), name="x-kubernetes-validations"
    )


class CustomResourceValidation(Struct):
    open_api_schema: JSONSchemaProps | None = field(default=None, name="openAPIV3Schema")


class CustomResourceSubresourceStatus(Struct):
    pass


class CustomResourceSubresourceScale(Struct):
    spec_replicas_path: str = always(default="")
    status_replicas_path: str = always(default="")
    label_selector_path: str | None = None


class CustomResourceSubresources(Struct):
    status: CustomResourceSubresourceStatus | None = None
    scale: CustomResourceSubresourceScale | None = None


class CustomResourceColumnDefinition(Struct):
    name: str = always(default="")
    type: str = always(default="")
    format: str = ""
    description: str = ""
    priority: int = 0
    json_path: str = always(default="", name="jsonPath")


class SelectableField(Struct):
    json_path: str = always(default="", name="jsonPath")


class CustomResourceDefinitionVersion(Struct):
    name: str = always(default="")
    served: bool = always(default=False)
    storage: bool = always(default=False)
    deprecated: bool = False
    deprecation_warning: str | None = None
    schema: CustomResourceValidation | None = None
    subresources: CustomResourceSubresources | None = None
    additional_printer_columns: Annotated[tuple[CustomResourceColumnDefinition, ...], ATOMIC] = ()
    selectable_fields: Annotated[tuple[SelectableField, ...], ATOMIC] = ()


class CustomResourceDefinitionNames(Struct):
    plural: str = always(default="")
    singular: str = ""
    short_names: Annotated[tuple[str, ...], ATOMIC] = ()
    kind: str = always(default="")
    list_kind: str = ""
    categories: Annotated[tuple[str, ...], ATOMIC] = ()


class ServiceReference(Struct):
    namespace: str = always(default="")
    name: str = always(default="")
    path: str | None = None
    port: int | None = None


class WebhookClientConfig(Struct):
    url: str | None = None
    service: ServiceReference | None = None
    ca_bundle: bytes = b""


class WebhookConversion(Struct):
    client_config: WebhookClientConfig | None = None
    conversion_review_versions: Annotated[tuple[str, ...], ATOMIC] = always(default=())


class CustomResourceConversion(Struct):
    strategy: str = always(default="")
    webhook: WebhookConversion | None = None


class CustomResourceDefinitionSpec(Struct):
    group: str = always(default="")
    names: CustomResourceDefinitionNames = always(default=CustomResourceDefinitionNames())
    scope: str = always(default="")
    versions: Annotated[tuple[CustomResourceDefinitionVersion, ...], ATOMIC] = always(default=())
    conversion: CustomResourceConversion | None = None
    preserve_unknown_fields: bool = False


class CustomResourceDefinitionCondition(Struct):
    type: str = always(default="")
    status: str = always(default="")
    last_transition_time: Time | None = None
    reason: str = ""
    message: str = ""
    observed_generation: int = 0


Conditions: TypeAlias = Annotated[tuple[CustomResourceDefinitionCondition, ...], keyed("type", patch=False)]


class CustomResourceDefinitionStatus(Struct):
    conditions: Conditions | None = always(default=None)
    accepted_names: CustomResourceDefinitionNames = always(default=CustomResourceDefinitionNames())
    stored_versions: Annotated[tuple[str, ...], ATOMIC] = always(default=())
    observed_generation: int = 0


class CustomResourceDefinition(Object):
    kind: str = always(default="CustomResourceDefinition")
    api_version: str = always(default="apiextensions.k8s.io/v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    spec: CustomResourceDefinitionSpec = always(default=CustomResourceDefinitionSpec())
    status: CustomResourceDefinitionStatus = always(default=CustomResourceDefinitionStatus())


def condition(definition: CustomResourceDefinition, kind: str) -> CustomResourceDefinitionCondition | None:
    return next((condition for condition in definition.status.conditions or () if condition.type == kind), None)


def holds(definition: CustomResourceDefinition, kind: str) -> bool:
    found = condition(definition, kind)
    return found is not None and found.status == "True"


def storage_version(definition: CustomResourceDefinition) -> str:
    return next((version.name for version in definition.spec.versions if version.storage), "")
