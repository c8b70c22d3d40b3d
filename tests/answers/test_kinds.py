import pytest

from podfit.answers.facts import kinds
from podfit.api.registry import info_for
from podfit.client.resource import Resource
from podfit.decide.workload.kinds import WORKLOADS, WorkloadKind


@pytest.mark.parametrize("kind", [kind for kind in vars(kinds).values() if isinstance(kind, Resource)])
def test_what_is_asked_for_is_where_the_table_of_kinds_has_it(kind: Resource) -> None:  # type: ignore[type-arg]  # of any kind
    info = info_for(kind.type)
    for args in ((), ("shop",), ("shop", "web"), ("shop", "web", "status")):
        assert kind.info.path(*args) == info.path(*args)


@pytest.mark.parametrize("known", WORKLOADS, ids=lambda known: known.kind)
def test_the_table_of_workloads_says_what_the_table_of_kinds_says(known: WorkloadKind) -> None:
    info = info_for(known.type)
    assert (known.group, known.version, known.resource, known.kind) == (
        info.group,
        info.version,
        info.resource,
        info.kind,
    )
    assert ([known.short] if known.short else []) == list(info.short_names)
