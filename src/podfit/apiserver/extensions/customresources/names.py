"""Names of CustomResourceDefinitions: whether one gets the names that it asks for, and so is established.

Names are taken within a group, by who asked first: a definition that has them accepted keeps them. One whose names are
all accepted becomes established, and stays so: its objects exist by then.
"""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from podfit.api.apiextensions.v1.approval import APPROVAL, approval, is_protected
from podfit.api.apiextensions.v1.types import (
    ESTABLISHED,
    NAMES_ACCEPTED,
    CustomResourceDefinition,
    CustomResourceDefinitionCondition,
    CustomResourceDefinitionNames,
    CustomResourceDefinitionStatus,
    condition,
)

APPROVED = "KubernetesAPIApprovalPolicyConformant"


def settled(
    definition: CustomResourceDefinition, others: Iterable[CustomResourceDefinition], now: str
) -> CustomResourceDefinitionStatus:
    """The status with names and conditions decided; equal to the old one when nothing is new."""
    taken = [other.status.accepted_names for other in others if other.spec.group == definition.spec.group]
    conflicts = list(_conflicts(definition.spec.names, definition.status.accepted_names, taken))
    status = definition.status
    accepted = ("True", "NoConflicts", "no conflicts found")
    names = definition.spec.names
    if conflicts:
        accepted = ("False", *conflicts[-1])
        names = replace(status.accepted_names, categories=names.categories)
    found = [_condition(definition, NAMES_ACCEPTED, accepted, now), _established(definition, accepted[0], now)]
    if is_protected(definition.spec.group):
        said = approval(definition.metadata.annotations.get(APPROVAL, ""))
        if said[0]:
            found.append(_condition(definition, APPROVED, said, now))
    own = {condition.type for condition in found}
    found += [condition for condition in status.conditions or () if condition.type not in own]
    return replace(status, accepted_names=names, conditions=tuple(found))


def _condition(
    definition: CustomResourceDefinition, kind: str, said: tuple[str, str, str], now: str
) -> CustomResourceDefinitionCondition:
    status, reason, message = said
    old = condition(definition, kind)
    if old is not None and (old.status, old.reason, old.message) == said:
        return old
    since = old.last_transition_time if old is not None and old.status == status else now
    return CustomResourceDefinitionCondition(
        type=kind, status=status, reason=reason, message=message, last_transition_time=since
    )


def _established(definition: CustomResourceDefinition, accepted: str, now: str) -> CustomResourceDefinitionCondition:
    old = condition(definition, ESTABLISHED)
    if old is not None and old.status == "True":
        return old
    said = ("False", "NotAccepted", "not all names are accepted")
    if accepted == "True":
        said = ("True", "InitialNamesAccepted", "the initial names have been accepted")
    return _condition(definition, ESTABLISHED, said, now)


def _conflicts(
    wanted: CustomResourceDefinitionNames,
    mine: CustomResourceDefinitionNames,
    taken: list[CustomResourceDefinitionNames],
) -> Iterator[tuple[str, str]]:
    """Reason and message of each name that is somebody else's. Resources and kinds are two worlds of names."""
    resources = {
        name
        for custom_resource_definition_names in taken
        for name in (
            custom_resource_definition_names.plural,
            custom_resource_definition_names.singular,
            *custom_resource_definition_names.short_names,
        )
    }
    kinds = {
        name
        for custom_resource_definition_names in taken
        for name in (custom_resource_definition_names.kind, custom_resource_definition_names.list_kind)
    }
    for reason, name, old, others in (
        ("PluralConflict", wanted.plural, mine.plural, resources),
        ("SingularConflict", wanted.singular, mine.singular, resources),
        *(
            ("ShortNamesConflict", name, name if name in mine.short_names else "", resources)
            for name in wanted.short_names
        ),
        ("KindConflict", wanted.kind, mine.kind, kinds),
        ("ListKindConflict", wanted.list_kind, mine.list_kind, kinds),
    ):
        if name != old and name in others:
            yield reason, f'"{name}" is already in use'
