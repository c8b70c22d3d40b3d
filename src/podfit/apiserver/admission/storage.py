"""DefaultStorageClass, PersistentVolumeClaimResize and StorageObjectInUseProtection."""

from typing import Any

from msgspec.structs import replace

from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.persistentvolumes.types import CLASS_ANNOTATION, PersistentVolume, class_of
from podfit.api.meta.base import ObjectT
from podfit.api.storage.v1.columns import is_default
from podfit.api.storage.v1.types import StorageClass
from podfit.apiserver.admission.chain import BasePlugin, PluginScope
from podfit.apiserver.context import Attributes
from podfit.core.errors import forbidden
from podfit.core.quantity import Quantity
from podfit.decide.placement.volumes import PROTECTION


class DefaultStorageClass(BasePlugin):
    """A claim that says nothing of a class gets the default one, the newest if there are several."""

    scope = PluginScope(operations=("CREATE",), kinds=(PersistentVolumeClaim,), subresources=("",))

    async def mutate(self, attributes: Attributes, obj: Any) -> Any:
        if obj.spec.storage_class_name is not None or CLASS_ANNOTATION in obj.metadata.annotations:
            return obj
        found = [storage_class for storage_class in await self.context.all(StorageClass) if is_default(storage_class)]
        if not found:
            return obj
        found.sort(key=lambda storage_class: storage_class.metadata.name)
        newest = max(found, key=lambda storage_class: storage_class.metadata.creation_timestamp or "")
        return replace(obj, spec=replace(obj.spec, storage_class_name=newest.metadata.name))


class ClaimResize(BasePlugin):
    """A claim grows only where its class says that volumes can."""

    scope = PluginScope(operations=("UPDATE",), kinds=(PersistentVolumeClaim,), subresources=("",))

    async def validate(self, attributes: Attributes, obj: Any) -> None:
        size, before = _size(obj), _size(attributes.old)
        if size is None or before is None or size <= before:
            return
        if attributes.old.status.phase != "Bound":
            text = "Only bound persistent volume claims can be expanded"
        elif await self._may_grow(obj, attributes.old):
            return
        else:
            text = (
                "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must "
                "support resize"
            )
        raise forbidden("persistentvolumeclaims", attributes.name, text)

    async def _may_grow(self, claim: PersistentVolumeClaim, before: PersistentVolumeClaim) -> bool:
        name = class_of(claim)
        if not name or name != class_of(before):
            return False
        found = await self.context.find(StorageClass, name)
        return found is not None and bool(found.allow_volume_expansion)


def _size(claim: PersistentVolumeClaim) -> Quantity | None:
    return claim.spec.resources.requests.get("storage")


class StorageInUseProtection(BasePlugin):
    """The finalizer that a controller takes away when nobody uses the object any more."""

    scope = PluginScope(operations=("CREATE",), kinds=(PersistentVolume, PersistentVolumeClaim), subresources=("",))

    async def mutate(self, attributes: Attributes, obj: ObjectT) -> ObjectT:
        name, finalizers = PROTECTION[attributes.info.type], obj.metadata.finalizers
        if name in finalizers:
            return obj
        return replace(obj, metadata=replace(obj.metadata, finalizers=(*finalizers, name)))
