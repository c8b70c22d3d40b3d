"""What every new pod gets: its priority, and patience with a node that is away for a while."""

from typing import Any

from msgspec.structs import replace

from podfit.api.core.v1.pods.affinity import Toleration
from podfit.api.core.v1.pods.types import Pod
from podfit.api.scheduling.v1.types import PriorityClass
from podfit.apiserver.admission.chain import Concern, Passive
from podfit.apiserver.context import Attributes
from podfit.core.errors import forbidden

AWAY_SECONDS = 300
AWAY = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_PATIENCE = [
    Toleration(key=key, operator="Exists", effect="NoExecute", toleration_seconds=AWAY_SECONDS) for key in AWAY
]


class PriorityAdmission(Passive):
    """From a class's name to its number; without one, the default class or 0."""

    concern = Concern(operations=("CREATE",), kinds=(Pod,), subresources=("",))

    async def mutate(self, attributes: Attributes, obj: Any) -> Any:
        found = await self._class_of(attributes, obj.spec.priority_class_name)
        value = found.value if found else 0
        policy = (found.preemption_policy if found else "") or "PreemptLowerPriority"
        if obj.spec.priority is not None and obj.spec.priority != value:
            text = (
                f"the integer value of priority ({obj.spec.priority}) must not be provided in pod spec; "
                f"priority admission controller computed {value} from the given PriorityClass name"
            )
            raise forbidden("pods", attributes.name, text)
        name = obj.spec.priority_class_name or (found.metadata.name if found else "")
        spec = replace(
            obj.spec, priority=value, priority_class_name=name, preemption_policy=obj.spec.preemption_policy or policy
        )
        return replace(obj, spec=spec)

    async def _class_of(self, attributes: Attributes, name: str) -> PriorityClass | None:
        if not name:
            defaults = [each for each in await self.context.settings(PriorityClass) if each.global_default]
            return min(defaults, key=lambda each: each.value, default=None)
        found = await self.context.find(PriorityClass, name)
        if found is None:
            raise forbidden("pods", attributes.name, f"no PriorityClass with name {name} was found")
        return found


class DefaultTolerations(Passive):
    """A pod stays for five minutes on a node that is not ready or not reachable.

    Also after an update that replaces the list: what was given by default cannot be taken away by leaving it out.
    """

    concern = Concern(operations=("CREATE", "UPDATE"), kinds=(Pod,), subresources=("",))

    async def mutate(self, attributes: Attributes, obj: Any) -> Any:
        given = obj.spec.tolerations
        missing = tuple([each for each in _PATIENCE if not given or not any(_covers(own, each.key) for own in given)])
        if not missing:
            return obj
        return replace(obj, spec=replace(obj.spec, tolerations=(*obj.spec.tolerations, *missing)))


def _covers(toleration: Toleration, key: str) -> bool:
    return toleration.key in ("", key) and toleration.effect in ("", "NoExecute")
