"""The rules for nodes on inputs that no recording has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.persistentvolumes.types import PersistentVolume
from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.types import MIRROR, Pod, PodSpec
from podfit.api.core.v1.pods.volumes import Volume
from podfit.api.meta.codec import convert
from podfit.api.meta.v1.types import ObjectMeta, OwnerReference
from podfit.decide.node_rights import nodes, pods
from podfit.decide.node_rights.references import readable_by_node, referred_by, secrets_of, volume_secrets
from podfit.decide.node_rights.requests import Decision, Denied, judged
from podfit.decide.node_rights.verdict import NotPermitted

SOURCES = sorted(set(Volume.__struct_fields__) - {"name"})
WITHOUT_API = {
    "aws_elastic_block_store",
    "azure_disk",
    "cephfs",
    "cinder",
    "downward_api",
    "empty_dir",
    "fc",
    "flex_volume",
    "flocker",
    "gce_persistent_disk",
    "git_repo",
    "host_path",
    "image",
    "iscsi",
    "nfs",
    "photon_persistent_disk",
    "portworx_volume",
    "quobyte",
    "rbd",
    "scale_io",
    "storageos",
    "vsphere_volume",
    "projected",
}
"""Sources of volumes that name no object of the API by themselves, as upstream lists them."""


@pytest.mark.parametrize(
    ("label", "allowed"),
    [
        ("kubernetes.io/hostname", True),
        ("kubernetes.io/hostnames", False),
        ("hostname", True),
        ("a/b", True),
        ("node.kubernetes.io/anything", True),
        ("deep.kubelet.kubernetes.io/anything", True),
        ("notkubelet.kubernetes.io/x", False),
        ("kubernetes.io.example.com/x", True),
        ("mykubernetes.io/x", True),
        ("node-restriction.kubernetes.io/x", False),
        ("a.node-restriction.kubernetes.io/x", False),
        ("k8s.io/x", False),
        ("sub.k8s.io/x", False),
        ("myk8s.io/x", True),
        ("topology.kubernetes.io/zone", True),
        ("topology.kubernetes.io/rack", False),
        ("node-role.kubernetes.io/worker", False),
        ("failure-domain.beta.kubernetes.io/region", True),
        ("beta.kubernetes.io/instance-type", True),
    ],
)
def test_labels(label: str, allowed: bool) -> None:
    assert nodes.may_set(label) is allowed


@given(st.dictionaries(st.sampled_from(["a", "kubernetes.io/x", "k8s.io/y", "node.kubernetes.io/z"]), st.text()))
def test_only_what_changes_is_judged(labels: dict[str, str]) -> None:
    node = Node(metadata=ObjectMeta(name="n", labels=labels))
    assert nodes.updated(node, node, "n") is None
    empty = Node(metadata=ObjectMeta(name="n"))
    verdicts = nodes.updated(node, empty, "n"), nodes.updated(empty, node, "n")
    protected = {"kubernetes.io/x", "k8s.io/y"} & labels.keys()
    assert all((verdict is not None) is bool(protected) for verdict in verdicts)


def _mirror(spec: PodSpec) -> Pod:
    owner = OwnerReference(api_version="v1", kind="Node", name="n", uid="u", controller=True)
    return Pod(metadata=ObjectMeta(name="p", annotations={MIRROR: ""}, owner_references=(owner,)), spec=spec)


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_of_volumes_is_known(source: str) -> None:
    """A source that is added later has to be told apart: it names an object of the API, or it does not."""
    field = next(name for name in Volume.__struct_fields__ if name == source)
    made = convert({"name": "v", Volume.__struct_encode_fields__[Volume.__struct_fields__.index(field)]: {}}, Volume)
    spec = PodSpec(node_name="n", containers=(Container(name="c"),), volumes=(made,))
    named = {"config_map": {"name": "x"}, "secret": {"secretName": "x"}, "azure_file": {"secretName": "x"}}
    if source in named:
        encoded = Volume.__struct_encode_fields__[Volume.__struct_fields__.index(field)]
        spec = PodSpec(node_name="n", volumes=(convert({"name": "v", encoded: named[source]}, Volume),))
    assert bool(referred_by(spec)) is (source not in WITHOUT_API)
    verdict = pods.created(_mirror(spec), "n", Node(metadata=ObjectMeta(name="n", uid="u")))
    assert isinstance(verdict, NotPermitted) is (source not in WITHOUT_API)


def test_secrets_of_ephemeral_containers_count() -> None:
    env = [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]
    spec = convert({"ephemeralContainers": [{"name": "e", "env": env}]}, PodSpec)
    assert secrets_of(spec) == {"s"}


def test_a_mirror_makes_nothing_readable() -> None:
    spec = convert({"serviceAccountName": "a", "imagePullSecrets": [{"name": "s"}]}, PodSpec)
    resources = ("secrets", "configmaps", "persistentvolumeclaims", "serviceaccounts", "pods")
    assert not any(readable_by_node(_mirror(spec), resource) for resource in resources)
    assert readable_by_node(Pod(spec=spec), "secrets") == {"s"}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ({"azureFile": {"secretName": "a"}}, {("claims", "a")}),
        ({"azureFile": {"secretName": "a", "secretNamespace": "b"}}, {("b", "a")}),
        ({"cephfs": {"secretRef": {"name": "a"}}}, {("claims", "a")}),
        ({"rbd": {"secretRef": {"name": "a", "namespace": "b"}}}, {("b", "a")}),
        ({"csi": {"nodeExpandSecretRef": {"name": "a", "namespace": "b"}}}, {("b", "a")}),
        ({"csi": {"controllerExpandSecretRef": {"name": "a", "namespace": "b"}}}, set()),
        ({"nfs": {"server": "s", "path": "/"}}, set()),
    ],
)
def test_secrets_of_volumes(source: dict[str, object], found: set[tuple[str, str]]) -> None:
    bound = {"spec": {**source, "claimRef": {"namespace": "claims", "name": "c"}}}
    assert volume_secrets(convert(bound, PersistentVolume)) == found
    assert not volume_secrets(convert({"spec": source}, PersistentVolume)), "nobody has claimed it"


class Asked:
    """A request for a resource."""

    def __init__(self, verb: str, resource: str, **more: str) -> None:
        self.verb, self.resource = verb, resource
        self.group, self.subresource = more.get("group", ""), more.get("subresource", "")
        self.namespace, self.name, self.of_node = more.get("namespace", ""), more.get("name", ""), more.get("node", "")


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (Asked("get", "secrets", namespace="a", name="s", subresource="x"), Denied("cannot read subresource")),
        (Asked("get", "persistentvolumes", name="s", subresource="status"), Denied("cannot get subresource")),
        (Asked("get", "persistentvolumeclaims", namespace="a"), Denied("No Object name found")),
        (
            Asked("create", "serviceaccounts", namespace="a", name="s", subresource="x"),
            Denied("can only create token subresource of serviceaccount"),
        ),
        (
            Asked("get", "csinodes", group="storage.k8s.io", name="n", subresource="status"),
            Denied("cannot authorize CSINode subresources"),
        ),
        (Asked("create", "resourceslices", group="resource.k8s.io"), Decision.ALLOWED),
        (Asked("delete", "nodes", name="n"), Denied()),
        (Asked("deletecollection", "pods", node="n"), Denied()),
        (
            Asked("get", "leases", group="coordination.k8s.io", namespace="default", name="n"),
            Denied('can only access leases in the "kube-node-lease" system namespace'),
        ),
        (Asked("list", "deployments", group="apps"), Decision.BY_ROLE),
    ],
)
def test_requests(asked: Asked, answer: Denied | Decision) -> None:
    assert judged("n", asked) == answer
