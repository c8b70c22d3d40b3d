"""The annotation `podfit.dev/minimum`: what it means, and in which words it is refused."""

import pytest

from podfit.api.core.v1.pods.types import Pod
from podfit.decide.node.room.minimum import MINIMUM, BadMinimum, MinimumSize, minimums
from support.pods import amounts, container, pod


def annotated(text: str) -> Pod:
    return pod(container("app"), container("log"), annotations={MINIMUM: text})


def target(restart: bool = False, **floor: str) -> MinimumSize:
    return MinimumSize(amounts(floor), restart)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("", {}),
        ("cpu=200m", {"app": target(cpu="200m"), "log": target(cpu="200m")}),
        ("app:cpu=100m", {"app": target(cpu="100m")}),
        (" app:cpu=100m , memory=64Mi,", {"app": target(cpu="100m", memory="64Mi"), "log": target(memory="64Mi")}),
        ("cpu=200m,log:cpu=50m", {"app": target(cpu="200m"), "log": target(cpu="50m")}),
        ("app:memory=64Mi,app:restart=allowed", {"app": target(restart=True, memory="64Mi")}),
        ("restart=allowed", {}),
    ],
)
def test_it_says_how_far_each_container_may_shrink(text: str, meaning: dict[str, MinimumSize]) -> None:
    assert minimums(annotated(text)) == meaning


def test_without_it_there_is_nothing_to_give() -> None:
    assert minimums(pod(container("app"))) == {}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("cpu", "'cpu' is not [CONTAINER:]NAME=VALUE"),
        ("cpu=", "'cpu=' is not [CONTAINER:]NAME=VALUE"),
        ("web:cpu=1", "no container is named 'web'"),
        ("cpu=1,cpu=2", "'cpu' is named twice"),
        ("cpu=0", "cpu=0: a minimum is more than nothing"),
        ("cpu=-1", "cpu=-1: a minimum is more than nothing"),
        ("disk=1Gi", "'disk' is neither cpu nor memory nor restart"),
        ("cpu=1,restart=yes", "restart=yes: the only value is allowed"),
        ("cpu=much", "cpu=much: quantities must match"),
    ],
)
def test_a_wrong_one_says_where(text: str, problem: str) -> None:
    with pytest.raises(BadMinimum) as refused:
        minimums(annotated(text))
    assert problem in str(refused.value)
