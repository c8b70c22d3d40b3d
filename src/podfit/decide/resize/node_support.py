"""Whether a bound pod's node could ever carry out a resize: its declared features and its capacity.

Both checks ask only about pods that are bound, and only when the spec or the burst ceiling really changed (R-074).
They keep hopeless requests from becoming stored desires: what is merely too much for now is the kubelet's to defer.
"""

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.aggregate import is_sidecar
from podfit.api.core.v1.pods.burst import CEILING
from podfit.api.core.v1.pods.types import Pod
from podfit.core.features import FeatureGates
from podfit.core.quantity import ZERO, Quantity
from podfit.decide.forbidden import Forbidden
from podfit.decide.pod.requests import pod_requests

_OS_LABEL = "kubernetes.io/os"
LEVEL_FEATURE = "InPlacePodLevelResourcesVerticalScaling"
INIT_FEATURE = "InPlacePodVerticalScalingInitContainers"


def changes_ceiling(new: Pod, old: Pod) -> bool:
    return new.metadata.annotations.get(CEILING) != old.metadata.annotations.get(CEILING)


def concerns_node(new: Pod, old: Pod) -> bool:
    changed = new.metadata.generation != old.metadata.generation or changes_ceiling(new, old)
    return bool(new.spec.node_name) and changed


def check_features(new: Pod, old: Pod, node: Node | None, gates: FeatureGates) -> Forbidden | None:
    """NodeDeclaredFeatureValidator: the node must have declared what the update needs (R-072, R-073)."""
    if not gates["NodeDeclaredFeatures"] or not concerns_node(new, old):
        return None
    if node is None:
        return Forbidden(f'node "{new.spec.node_name}" not found')
    missing = [name for name in _needed(new, old) if name not in node.status.declared_features]
    if not missing:
        return None
    text = f"pod update requires features {', '.join(missing)} which are not available on node"
    return Forbidden(f'{text} "{new.spec.node_name}"')


def _needed(new: Pod, old: Pod) -> list[str]:
    """Sorted names of features."""
    before = {container.name: container.resources for container in old.spec.init_containers}
    plain = (container for container in new.spec.init_containers if not is_sidecar(container))
    features = [LEVEL_FEATURE] if new.spec.resources != old.spec.resources else []
    if any(container.resources != before.get(container.name) for container in plain):
        features.append(INIT_FEATURE)
    return features


def check_capacity(new: Pod, old: Pod, node: Node | None, gates: FeatureGates) -> Forbidden | None:
    """PodResizeValidator: Linux, and no more than the node's allocatable, which is itself allowed (R-069 to R-071)."""
    if not concerns_node(new, old):
        return None
    if node is None:
        return Forbidden(f'node "{new.spec.node_name}" not found')
    system = node.metadata.labels.get(_OS_LABEL, "linux")
    if system != "linux":
        text = f'pod resize is only supported on linux nodes, node "{node.metadata.name}" is "{system}"'
        return Forbidden(text, ("UnsupportedPlatform",))
    wanted, room = pod_requests(new, gates=gates), node.status.allocatable
    short = [name for name in ("cpu", "memory") if wanted.get(name, ZERO) > room.get(name, ZERO)]
    if not short:
        return None
    parts = (
        f"{name}, requested: {_plain(wanted.get(name, ZERO), name)}, allocatable: {_plain(room.get(name, ZERO), name)}"
        for name in short
    )
    return Forbidden(f"node didn't have enough allocatable resources: {'; '.join(parts)}", ("NodeCapacity",))


def _plain(amount: Quantity, name: str) -> int:
    """CPU in thousandths, memory in bytes."""
    return amount.milli() if name == "cpu" else amount.value()
