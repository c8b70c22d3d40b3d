"""DefaultIngressClass: ingresses without a class get the default one."""

from typing import Any

from msgspec.structs import replace

from podfit.api.networking.v1.types import Ingress, IngressClass
from podfit.apiserver.admission.chain import BasePlugin, PluginScope
from podfit.apiserver.context import Attributes

IS_DEFAULT = "ingressclass.kubernetes.io/is-default-class"
NAMED = "kubernetes.io/ingress.class"
"""The annotation that named a class before there was a field."""


class DefaultIngressClass(BasePlugin):
    """An ingress that names no class gets the default one, the newest if there are several."""

    scope = PluginScope(operations=("CREATE",), kinds=(Ingress,), subresources=("",))

    async def mutate(self, _attributes: Attributes, obj: Any) -> Any:
        if obj.spec.ingress_class_name is not None or NAMED in obj.metadata.annotations:
            return obj
        classes = await self.context.all(IngressClass)
        found = [class_ for class_ in classes if class_.metadata.annotations.get(IS_DEFAULT) == "true"]
        if not found:
            return obj
        found.sort(key=lambda ingress_class: ingress_class.metadata.name)
        newest = max(found, key=lambda ingress_class: ingress_class.metadata.creation_timestamp or "")
        return replace(obj, spec=replace(obj.spec, ingress_class_name=newest.metadata.name))
