"""Pods whose claims are bound when they have their node wait for a volume, and go where one comes."""

from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.persistentvolumes.types import PersistentVolume
from podfit.api.meta.codec import convert
from podfit.api.storage.v1.types import StorageClass
from podfit.decide.placement.volumes import SELECTED_NODE
from support.placing import HOSTNAME
from support.scheduling import World

CLASS = convert(
    {
        "metadata": {"name": "local"},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    },
    StorageClass,
)
CLAIM = convert(
    {
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    },
    PersistentVolumeClaim,
)
TERM = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": ["n2"]}]}
VOLUME = convert(
    {
        "metadata": {"name": "disk"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "capacity": {"storage": "1Gi"},
            "local": {"path": "/disk"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [TERM]}},
        },
    },
    PersistentVolume,
)


async def test_a_pod_waits_for_its_class_and_its_volume_and_goes_where_that_is(world: World) -> None:
    await world.node("n1", cpu="8", labels={HOSTNAME: "n1"})
    await world.node("n2", labels={HOSTNAME: "n2"})
    await world.client.create(CLAIM)
    await world.pod("a", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}])
    assert "unbound immediate PersistentVolumeClaims" in await world.waits("a")
    await world.client.create(CLASS)
    await world.rest()
    assert "2 node(s) didn't find available persistent volumes to bind" in await world.waits("a")
    await world.client.create(VOLUME)
    available = {"status": {"phase": "Available"}}
    await world.client.patch(PersistentVolume, "disk", "", available, subresource="status")
    await world.rest()
    claim = await world.client.get(PersistentVolumeClaim, "data", "default")
    assert claim.metadata.annotations[SELECTED_NODE] == "n2"
