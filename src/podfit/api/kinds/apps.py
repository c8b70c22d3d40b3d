"""The kinds of apps."""

from podfit.api.apps.v1 import columns
from podfit.api.apps.v1.daemonsets import ControllerRevision, DaemonSet
from podfit.api.apps.v1.deployments import Deployment, ReplicaSet
from podfit.api.apps.v1.statefulsets import StatefulSet
from podfit.api.core.v1.replication.columns import REPLICAS
from podfit.api.kinds.scale import SCALE
from podfit.api.meta.resource_info import STATUS, ResourceInfo

KINDS: tuple[ResourceInfo, ...] = (
    ResourceInfo(
        type=ControllerRevision,
        group="apps",
        resource="controllerrevisions",
        singular="controllerrevision",
        columns=columns.REVISION,
        row=columns.revision_row,
    ),
    ResourceInfo(
        type=DaemonSet,
        group="apps",
        resource="daemonsets",
        singular="daemonset",
        short_names=("ds",),
        categories=("all",),
        subresources=(STATUS,),
        counted=lambda o: o.spec,
        columns=columns.DAEMON_SET,
        row=columns.daemon_set_row,
    ),
    ResourceInfo(
        type=Deployment,
        group="apps",
        resource="deployments",
        singular="deployment",
        short_names=("deploy",),
        categories=("all",),
        subresources=(SCALE, STATUS),
        counted=lambda o: (o.spec, o.metadata.annotations),  # which its replica sets get, too
        columns=columns.DEPLOYMENT,
        row=columns.deployment_row,
    ),
    ResourceInfo(
        type=ReplicaSet,
        group="apps",
        resource="replicasets",
        singular="replicaset",
        short_names=("rs",),
        categories=("all",),
        subresources=(SCALE, STATUS),
        counted=lambda o: o.spec,
        columns=REPLICAS,
        row=columns.replica_set_row,
    ),
    ResourceInfo(
        type=StatefulSet,
        group="apps",
        resource="statefulsets",
        singular="statefulset",
        short_names=("sts",),
        categories=("all",),
        subresources=(SCALE, STATUS),
        counted=lambda o: o.spec,
        columns=columns.STATEFUL_SET,
        row=columns.stateful_set_row,
    ),
)
