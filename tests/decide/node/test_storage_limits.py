"""Who uses more local storage than they may."""

from typing import Any

import pytest

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.decide.node.pod_load import Load, LocalStorage, Used
from podfit.decide.node.storage_limits import exceeded, is_limited

MI = 1 << 20


def pod(limit: str = "", size: str = "", **empty: Any) -> Pod:
    resources = {"limits": {"ephemeral-storage": limit}} if limit else {}
    container = {"name": "c", "resources": resources}
    volume = {"name": "v", "emptyDir": ({"sizeLimit": size} if size else {}) | empty}
    return convert({"metadata": {"name": "p"}, "spec": {"containers": [container], "volumes": [volume]}}, Pod)


def load(subject: Pod, *, root: int = 0, log: int = 0, volume: int = 0) -> Load:
    parts = {"roots": {"c": Used(root * MI)}, "logs": {"c": Used(log * MI)}, "volumes": {"v": Used(volume * MI)}}
    return Load(subject, storage=LocalStorage(**parts))


def said(subject: Load, *, split: bool = False) -> str:
    found = exceeded(subject, split=split)
    return found.message if found is not None else ""


POD = "Pod ephemeral local storage usage exceeds the total limit of containers 10Mi. "
CONTAINER = 'Container c exceeded its local ephemeral storage limit "10Mi". '


@pytest.mark.parametrize(
    ("subject", "message"),
    [
        (load(pod(size="5Mi"), volume=5), ""),
        (load(pod(size="5Mi"), volume=6), 'Usage of EmptyDir volume "v" exceeds the limit "5Mi". '),
        (load(pod(limit="10Mi", size="5Mi"), volume=20), 'Usage of EmptyDir volume "v" exceeds the limit "5Mi". '),
        (load(pod(limit="10Mi"), volume=4, log=3, root=3), ""),
        (load(pod(limit="10Mi"), volume=4, log=3, root=4), POD),
        (load(pod(), volume=400), ""),
    ],
)
def test_what_is_exceeded(subject: Load, message: str) -> None:
    assert said(subject) == message


def test_a_container_is_held_to_its_own_limit() -> None:
    document = pod(limit="10Mi")
    other = {"name": "d", "resources": {"limits": {"ephemeral-storage": "90Mi"}}}
    spec = {"containers": [{"name": "c", "resources": {"limits": {"ephemeral-storage": "10Mi"}}}, other]}
    document = convert({"metadata": {"name": "p"}, "spec": spec}, Pod)
    assert said(load(document, root=11)) == CONTAINER
    assert said(load(document, root=11), split=True) == "", "its layer is on another disk"
    assert said(load(document, root=11, log=11), split=True) == CONTAINER


@pytest.mark.parametrize(
    ("subject", "limited"),
    [(pod(), False), (pod(limit="1Mi"), True), (pod(size="1Mi"), True), (pod(size="1Mi", medium="Memory"), False)],
)
def test_who_has_to_be_measured(subject: Pod, limited: bool) -> None:
    assert is_limited(subject) is limited
