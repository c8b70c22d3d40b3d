import pytest

from podfit.answers.facts import kinds
from podfit.api.registry import info_for
from podfit.client.resource import Resource


@pytest.mark.parametrize("kind", [kind for kind in vars(kinds).values() if isinstance(kind, Resource)])
def test_what_is_asked_for_is_where_the_table_of_kinds_has_it(kind: Resource) -> None:  # type: ignore[type-arg]  # of any kind
    info = info_for(kind.type)
    for args in ((), ("shop",), ("shop", "web"), ("shop", "web", "status")):
        assert kind.info.path(*args) == info.path(*args)
