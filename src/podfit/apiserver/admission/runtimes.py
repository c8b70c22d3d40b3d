"""RuntimeClass: a pod gets the overhead and the scheduling constraints of its runtime class."""

from typing import Any

from msgspec.structs import replace

from podfit.api.core.v1.pods.types import Pod
from podfit.api.node.v1.types import RuntimeClass
from podfit.apiserver.admission.chain import BasePlugin, PluginScope
from podfit.apiserver.context import Attributes
from podfit.core.errors import forbidden
from podfit.decide.pod.runtime_class import Conflict, with_runtime_class


class RuntimeClassAdmission(BasePlugin):
    scope = PluginScope(operations=("CREATE",), kinds=(Pod,), subresources=("",))

    async def mutate(self, attributes: Attributes, obj: Any) -> Any:
        name = obj.spec.runtime_class_name
        found = await self.context.find(RuntimeClass, name) if name else None
        if name and found is None:
            raise forbidden("pods", attributes.name, f'pod rejected: RuntimeClass "{name}" not found')
        spec = with_runtime_class(obj.spec, found)
        if isinstance(spec, Conflict):
            raise forbidden("pods", attributes.name, f"pod rejected: {spec.text}")
        return obj if spec is obj.spec else replace(obj, spec=spec)
