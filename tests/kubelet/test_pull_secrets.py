"""Images of registries that ask who pulls."""

import base64
import json

from kubelet.harness import Node, container
from kubelet.test_probes import told

IMAGE = "registry.io/team/app:1"


def add_secret(node: Node, name: str, **auths: dict[str, str]) -> None:
    text = json.dumps({"auths": auths}).encode()
    data = {".dockerconfigjson": base64.b64encode(text).decode()}
    meta = {"name": name, "namespace": "default"}
    node.api.put("secrets", {"kind": "Secret", "apiVersion": "v1", "metadata": meta, "data": data})


async def test_each_credential_is_tried_the_nearest_first(node: Node) -> None:
    node.runtime.pullable.add(IMAGE)
    node.runtime.guarded[IMAGE] = "right"
    near, far = {"username": "near", "password": "wrong"}, {"username": "far", "password": "right"}
    add_secret(node, "s", **{"registry.io": far, "registry.io/team": near})
    node.add(imagePullSecrets=[{"name": "s"}, {"name": "absent"}], containers=[container("c1", image=IMAGE)])
    await node.runs()
    pulls = [call for call in node.runtime.calls if call.startswith("pull")]
    assert pulls == [f"pull {IMAGE} as near", f"pull {IMAGE} as far"]
    [text] = told(node, "FailedToRetrieveImagePullSecret")
    assert "(absent)" in text


async def test_without_a_secret_the_registry_refuses(node: Node) -> None:
    node.runtime.pullable.add(IMAGE)
    node.runtime.guarded[IMAGE] = "right"
    node.add(containers=[container("c1", image=IMAGE)])
    await node.until(lambda: node.state().get("state", {}).get("waiting", {}).get("reason") == "ErrImagePull")
    assert [call for call in node.runtime.calls if call.startswith("pull")] == [f"pull {IMAGE}"]
