"""What claims and volumes get: the default class, and protection from going while they are in use."""

from typing import Any

from msgspec.structs import replace

from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.persistentvolumes.types import PersistentVolume
from podfit.api.storage.v1.columns import is_default
from podfit.api.storage.v1.types import StorageClass
from podfit.apiserver.admission.chain import Concern, Passive
from podfit.apiserver.context import Attributes
from podfit.decide.placement.volumes import PROTECTION


class DefaultStorageClass(Passive):
    """A claim that says nothing of a class gets the default one, the newest if there are several."""

    concern = Concern(operations=("CREATE",), kinds=(PersistentVolumeClaim,), subresources=("",))

    async def mutate(self, attributes: Attributes, obj: Any) -> Any:
        if obj.spec.storage_class_name is not None:
            return obj
        found = [each for each in await self.context.all(StorageClass) if is_default(each)]
        if not found:
            return obj
        found.sort(key=lambda each: each.metadata.name)
        newest = max(found, key=lambda each: each.metadata.creation_timestamp or "")
        return replace(obj, spec=replace(obj.spec, storage_class_name=newest.metadata.name))


class StorageInUseProtection(Passive):
    """The finalizer that a controller takes away when nobody uses the object any more."""

    concern = Concern(operations=("CREATE",), kinds=(PersistentVolume, PersistentVolumeClaim), subresources=("",))

    async def mutate(self, attributes: Attributes, obj: Any) -> Any:
        name, finalizers = PROTECTION[attributes.info.type], obj.metadata.finalizers
        if name in finalizers:
            return obj
        return replace(obj, metadata=replace(obj.metadata, finalizers=(*finalizers, name)))
