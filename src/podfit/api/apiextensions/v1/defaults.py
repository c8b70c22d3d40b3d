"""Defaults of CustomResourceDefinitions."""

from collections.abc import Callable, Mapping
from typing import Any

from podfit.api.apiextensions.v1.types import (
    CustomResourceConversion,
    CustomResourceDefinition,
    CustomResourceDefinitionNames,
    CustomResourceDefinitionSpec,
    storage_version,
)
from podfit.api.meta.base import Object
from podfit.api.meta.defaulting import change, fill, inside


def _definition(definition: CustomResourceDefinition) -> CustomResourceDefinition:
    """Names that follow from the kind; the version that is stored is one that was."""
    definition = inside(definition, spec=_definition_spec)
    stored, name = definition.status.stored_versions, storage_version(definition)
    if not name or name in stored:
        return definition
    return change(definition, status=change(definition.status, stored_versions=(*stored, name)))


def _definition_spec(spec: CustomResourceDefinitionSpec) -> CustomResourceDefinitionSpec:
    return inside(fill(spec, conversion=CustomResourceConversion(strategy="None")), names=_definition_names)


def _definition_names(names: CustomResourceDefinitionNames) -> CustomResourceDefinitionNames:
    if not names.kind:
        return names
    return fill(names, singular=names.kind.lower(), list_kind=f"{names.kind}List")


DEFAULTS: Mapping[type[Object], Callable[[Any], Any]] = {CustomResourceDefinition: _definition}
