"""Priority, DefaultTolerationSeconds and PodTopologyLabels: what every new pod gets."""

from typing import Any

from msgspec.structs import replace

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.affinity import Toleration
from podfit.api.core.v1.pods.types import Pod
from podfit.api.scheduling.v1.types import PriorityClass
from podfit.apiserver.admission.chain import BasePlugin, PluginScope
from podfit.apiserver.context import Attributes
from podfit.core.errors import forbidden

AWAY_SECONDS = 300
TOPOLOGY = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
AWAY = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_AWAY_TOLERATIONS = [
    Toleration(key=key, operator="Exists", effect="NoExecute", toleration_seconds=AWAY_SECONDS) for key in AWAY
]


class PriorityAdmission(BasePlugin):
    """From a class's name to its number; without one, the default class or 0."""

    scope = PluginScope(operations=("CREATE", "UPDATE"), kinds=(Pod, PriorityClass), subresources=("",))

    async def validate(self, attributes: Attributes, obj: Any) -> None:
        """Raises 403 for a second default class."""
        if attributes.info.type is not PriorityClass or not obj.global_default:
            return
        default = await self._default()
        if default is not None and (attributes.operation != "UPDATE" or default.metadata.name != obj.metadata.name):
            text = f"PriorityClass {default.metadata.name} is already marked as default. Only one default can exist"
            raise forbidden("priorityclasses", attributes.name, text, group=attributes.info.group)

    async def mutate(self, attributes: Attributes, obj: Any) -> Any:
        if attributes.info.type is PriorityClass:
            return obj
        if attributes.operation == "UPDATE":
            return _as_before(obj, attributes.old)
        found = await self._class_of(attributes, obj.spec.priority_class_name)
        value = found.value if found else 0
        policy = (found.preemption_policy if found else "") or "PreemptLowerPriority"
        given = obj.spec.preemption_policy
        if obj.spec.priority is not None and obj.spec.priority != value:
            text = (
                f"the integer value of priority ({obj.spec.priority}) must not be provided in pod spec; "
                f"priority admission controller computed {value} from the given PriorityClass name"
            )
            raise forbidden("pods", attributes.name, text)
        if given and given != policy:
            text = (
                f"the string value of PreemptionPolicy ({given}) must not be provided in pod spec; "
                f"priority admission controller computed {policy} from the given PriorityClass name"
            )
            raise forbidden("pods", attributes.name, text)
        name = obj.spec.priority_class_name or (found.metadata.name if found else "")
        spec = replace(obj.spec, priority=value, priority_class_name=name, preemption_policy=policy)
        return replace(obj, spec=spec)

    async def _class_of(self, attributes: Attributes, name: str) -> PriorityClass | None:
        if not name:
            return await self._default()
        found = await self.context.find(PriorityClass, name)
        if found is None:
            raise forbidden("pods", attributes.name, f"no PriorityClass with name {name} was found")
        return found

    async def _default(self) -> PriorityClass | None:
        defaults = [setting for setting in await self.context.settings(PriorityClass) if setting.global_default]
        return min(defaults, key=lambda priority_class: priority_class.value, default=None)


def _as_before(pod: Pod, old: Pod) -> Pod:
    """An update that leaves the priority out means the one that the pod has."""
    spec, before = pod.spec, old.spec
    priority = before.priority if spec.priority is None else spec.priority
    policy = spec.preemption_policy or before.preemption_policy
    if (priority, policy) == (spec.priority, spec.preemption_policy):
        return pod
    return replace(pod, spec=replace(spec, priority=priority, preemption_policy=policy))


class PodTopologyLabels(BasePlugin):
    """A pod that is placed is labelled with the zone and the region of its node."""

    scope = PluginScope(operations=("CREATE",), kinds=(Pod,), subresources=("binding",))

    async def mutate(self, _attributes: Attributes, obj: Any) -> Any:
        node = await self.context.find(Node, obj.target.name) if obj.target.name else None
        labels = node.metadata.labels if node else {}
        found = {name: labels[name] for name in TOPOLOGY if name in labels}
        return replace(obj, metadata=replace(obj.metadata, labels=obj.metadata.labels | found)) if found else obj


class DefaultTolerations(BasePlugin):
    """A pod stays for five minutes on a node that is not ready or not reachable.

    Also after an update that replaces the list: what was given by default cannot be taken away by leaving it out.
    """

    scope = PluginScope(operations=("CREATE", "UPDATE"), kinds=(Pod,), subresources=("",))

    async def mutate(self, attributes: Attributes, obj: Any) -> Any:
        given = obj.spec.tolerations
        missing = tuple(
            [
                toleration
                for toleration in _AWAY_TOLERATIONS
                if not given or not any(_covers(own, toleration.key) for own in given)
            ]
        )
        if not missing:
            return obj
        return replace(obj, spec=replace(obj.spec, tolerations=(*obj.spec.tolerations, *missing)))


def _covers(toleration: Toleration, key: str) -> bool:
    return toleration.key in ("", key) and toleration.effect in ("", "NoExecute")
