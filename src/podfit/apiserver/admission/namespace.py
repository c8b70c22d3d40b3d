"""NamespaceLifecycle: no creation in missing or terminating namespaces; some namespaces are never deleted."""

from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.meta.base import Object, ObjectT
from podfit.apiserver.admission.chain import BasePlugin, PluginScope
from podfit.apiserver.context import Attributes
from podfit.core.errors import ApiError, forbidden, not_found

IMMORTAL = ("default", "kube-system", "kube-public")


class NamespaceLifecycle(BasePlugin):
    scope = PluginScope(operations=("CREATE", "DELETE"))

    async def mutate(self, attributes: Attributes, obj: ObjectT) -> ObjectT:
        if attributes.operation != "CREATE" or not attributes.info.namespaced:
            return obj
        namespace = await self.context.find(Namespace, attributes.namespace)
        if namespace is None:
            raise not_found("namespaces", attributes.namespace)
        attributes.reinvocations.namespace = namespace
        if namespace.metadata.deletion_timestamp:
            raise _terminating(attributes)
        return obj

    async def validate(self, attributes: Attributes, obj: Object) -> None:
        deletes = attributes.operation == "DELETE" and attributes.info.type is Namespace
        if deletes and attributes.name in IMMORTAL:
            raise forbidden("namespaces", attributes.name, "this namespace may not be deleted")


def _terminating(attributes: Attributes) -> ApiError:
    name = attributes.namespace
    text = f"unable to create new content in namespace {name} because it is being terminated"
    causes = [
        {
            "reason": "NamespaceTerminating",
            "message": f"namespace {name} is being terminated",
            "field": "metadata.namespace",
        }
    ]
    return forbidden(attributes.info.resource, attributes.name, text, group=attributes.info.group, causes=causes)
