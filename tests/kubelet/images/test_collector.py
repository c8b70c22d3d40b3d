"""Unused images go when their disk fills up, on a node with a fake runtime."""

from kubelet.harness import Node, container
from kubelet.test_probes import told
from podfit.decide.node.pressure import Observation
from podfit.kubelet.runtime.images import BUSYBOX
from podfit.kubelet.runtime.types import Image

GI = 1 << 30
FULL = Observation(15 * GI, 100 * GI)  # 5 GiB are missing to the low threshold, and no pod has to go yet


def stores(node: Node, **sizes: int) -> None:
    for name, size in sizes.items():
        node.runtime.images[name] = Image(id=f"sha256:{name}", tags=(name,), size=size * GI)


def removed(node: Node) -> list[str]:
    return [call.removeprefix("rmi sha256:") for call in node.runtime.calls if call.startswith("rmi")]


async def used_and_left(node: Node, image: str) -> None:
    """A container used the image at a look, and is gone."""
    node.add(image, containers=[container("c1", image=image)])
    await node.runs(image)
    await node.advance(300)
    node.api.remove("pods", image)
    await node.advance(60)


async def test_the_one_used_longest_ago_goes_first_and_no_more_than_needed(node: Node) -> None:
    stores(node, one=3, two=5, three=2)
    node.signals["imagefs.available"] = Observation(90 * GI, 100 * GI)
    await used_and_left(node, "one")
    await used_and_left(node, "two")
    node.signals["imagefs.available"] = FULL
    await node.advance(300)
    assert removed(node) == ["1", "three", "one"], "app:1 and three were never used; then 5 GiB are free"
    assert told(node, "ImageGCFailed") == []


async def test_what_is_used_pinned_built_in_or_new_stays(node: Node) -> None:
    node.signals["imagefs.available"] = Observation(90 * GI, 100 * GI)
    stores(node, used=5)
    node.add(containers=[container("c1", image="used")])
    await node.runs()
    node.runtime.images["pinned"] = Image(id="sha256:pinned", tags=("pinned",), size=5 * GI, pinned=True)
    node.runtime.images[BUSYBOX] = Image(id="sha256:busybox", tags=(BUSYBOX,), size=5 * GI)
    await node.advance(589)
    stores(node, new=3)
    node.signals["imagefs.available"] = FULL
    await node.advance(12)
    assert removed(node) == ["1"]
    failed = told(node, "FreeDiskSpaceFailed")
    assert len(failed) == 1
    assert "(85% of 100.0 GiB used)" in failed[0]
    assert told(node, "ImageGCFailed") == [], "the first failure in a row is not told of"
    await node.advance(300)
    assert removed(node) == ["1", "new"]
    assert len(told(node, "ImageGCFailed")) == 1


async def test_an_image_that_the_runtime_keeps_is_told_of(node: Node) -> None:
    node.signals["imagefs.available"] = FULL
    node.runtime.fail["rmi"] = "read-only file system"
    await node.advance(600)
    found = told(node, "ImageGCFailed")
    assert len(found) == 1
    assert "wanted to free 5368709120 bytes, but freed 0 bytes space with errors in image deletion" in found[0]
