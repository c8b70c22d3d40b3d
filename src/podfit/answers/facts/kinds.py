"""The kinds that answers read from a cluster, with their paths.

Named here once more, because the table of all kinds takes a tenth of a second to load, with the columns and rules of
each; `tests/answers/test_kinds.py` compares the two.
"""

from podfit.api.admissionregistration.v1.types import MutatingWebhookConfiguration, ValidatingWebhookConfiguration
from podfit.api.apps.v1.deployments import ReplicaSet
from podfit.api.apps.v1.statefulsets import StatefulSet
from podfit.api.autoscaling.v2.types import HorizontalPodAutoscaler
from podfit.api.coordination.v1.types import Lease
from podfit.api.core.v1.config.types import ConfigMap
from podfit.api.core.v1.limits.types import LimitRange, ResourceQuota
from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.persistentvolumes.types import PersistentVolume
from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.replication.types import ReplicationController
from podfit.api.core.v1.services.types import Service
from podfit.api.policy.v1.types import PodDisruptionBudget
from podfit.api.storage.v1.types import StorageClass
from podfit.client.resource import known

PODS = known(Pod, "pods")
NODES = known(Node, "nodes", namespaced=False)
LIMIT_RANGES = known(LimitRange, "limitranges")
QUOTAS = known(ResourceQuota, "resourcequotas")
CONFIG_MAPS = known(ConfigMap, "configmaps")
NAMESPACES = known(Namespace, "namespaces", namespaced=False)
LEASES = known(Lease, "leases", group="coordination.k8s.io")
CLAIMS = known(PersistentVolumeClaim, "persistentvolumeclaims")
_ADMISSION = "admissionregistration.k8s.io"
MUTATING = known(MutatingWebhookConfiguration, "mutatingwebhookconfigurations", namespaced=False, group=_ADMISSION)
VALIDATING = known(
    ValidatingWebhookConfiguration, "validatingwebhookconfigurations", namespaced=False, group=_ADMISSION
)
BUDGETS = known(PodDisruptionBudget, "poddisruptionbudgets", group="policy")
HPAS = known(HorizontalPodAutoscaler, "horizontalpodautoscalers", group="autoscaling", version="v2")
SERVICES = known(Service, "services")
REPLICA_SETS = known(ReplicaSet, "replicasets", group="apps")
STATEFUL_SETS = known(StatefulSet, "statefulsets", group="apps")
REPLICATION_CONTROLLERS = known(ReplicationController, "replicationcontrollers")
VOLUMES = known(PersistentVolume, "persistentvolumes", namespaced=False)
CLASSES = known(StorageClass, "storageclasses", namespaced=False, group="storage.k8s.io")
