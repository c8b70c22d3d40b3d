"""Which revisions of a daemon set are kept, and how an event shows a selector."""

import pytest

from podfit.api.apps.v1.daemonsets import ControllerRevision
from podfit.api.meta.selectors import go_text
from podfit.api.meta.v1.types import LabelSelector, LabelSelectorRequirement, ObjectMeta
from podfit.decide.workload.history import HASH, superfluous_of_daemons


def revision(number: int) -> ControllerRevision:
    return ControllerRevision(metadata=ObjectMeta(name=f"ds-{number}", labels={HASH: str(number)}), revision=number)


@pytest.mark.parametrize(
    ("limit", "in_use", "gone"),
    [
        (10, "", []),
        (1, "", [1, 2]),
        (1, "3", [1, 2]),  # a revision that a pod has counts
        (2, "1", [2]),
        (0, "23", [1]),
    ],
)
def test_the_oldest_of_no_pod_go(limit: int, in_use: str, gone: list[int]) -> None:
    found = superfluous_of_daemons([revision(number) for number in (1, 2, 3)], limit, in_use)
    assert [made.revision for made in found] == gone


def test_a_selector_as_go_prints_it() -> None:
    other = LabelSelectorRequirement(key="tier", operator="In", values=("a", "b"))
    assert go_text(LabelSelector(match_labels={"app": "x"}, match_expressions=(other,))) == (
        "&LabelSelector{MatchLabels:map[string]string{app: x,},MatchExpressions:[]LabelSelectorRequirement{"
        "LabelSelectorRequirement{Key:tier,Operator:In,Values:[a b],},},}"
    )
