"""The controllers beside a real API server."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest
from msgspec.structs import replace

from podfit.api.apiextensions.v1.types import CustomResourceDefinition
from podfit.api.apiregistration.v1.types import APIService
from podfit.api.authorization.v1.types import SubjectAccessReview
from podfit.api.coordination.v1.types import Lease
from podfit.api.core.v1.config.types import ConfigMap, Secret, ServiceAccount
from podfit.api.core.v1.limits.types import ResourceQuota
from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.persistentvolumes.types import PersistentVolume
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.api.meta.v1.types import ObjectMeta
from podfit.api.rbac.v1.types import ClusterRole, ClusterRoleBinding, PolicyRule
from podfit.api.registry import info_for
from podfit.apiserver.housekeeping.bootstrap import RETIRED, bootstrap
from podfit.apiserver.registry.stored import Stored
from podfit.client.informers import Informers
from podfit.client.resource import dynamic
from podfit.controllers.certificates import Signing
from podfit.controllers.garbage.graph import Item
from podfit.controllers.namespaces import ASK_AGAIN, LAST_WRITES, NamespaceController
from podfit.controllers.quotas import QuotaController
from podfit.controllers.served_kinds import served
from podfit.controllers.serviceaccounts import KUBE_SYSTEM, ControllerAccounts
from podfit.core.errors import ApiError
from podfit.net.authority import Authority
from podfit.net.wire import Identity
from podfit.process.control.controllers import controllers, garbage_collection
from podfit.process.identities import MANAGER, controller
from podfit.store.layer import StoreLayer
from podfit.store.memory import memory_store
from podfit.store.protocol import Companion, CompanionConflict, Record
from support.background import beside
from support.clock import FakeClock, at_rest
from support.server import Server, running_server

T = TypeVar("T")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def server(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Server]:
    async with running_server(tmp_path, clock=clock) as made:
        authority = Authority.load(tmp_path / "pki", clock=clock)

        async def served() -> frozenset[str]:
            return authority.served()

        signing = Signing(authority.ends, authority.sign, served)
        informers = Informers(made.as_identity(Identity(MANAGER)), clock)
        every = controllers(made.as_identity, informers, clock, ca="CERTIFICATE", signing=signing)
        quotas = QuotaController(
            made.as_identity(controller("resourcequota-controller")),
            informers=informers,
            clock=clock,
            gates=made.context.gates,
        )
        namespaces = NamespaceController(
            made.as_identity(controller("namespace-controller")), informers=informers, clock=clock
        )

        def gone(item: Item) -> None:
            namespaces.gone(item)
            quotas.gone(item)

        collecting = garbage_collection(made.as_identity, informers, clock, gone=gone)
        loops = (
            namespaces.run(),
            quotas.run(),
            *(controller.run() for controller in every.values()),
            *collecting,
            informers.run(),
        )
        async with beside(*loops):
            yield made


async def until(server: Server, kind: type[T], name: str, namespace: str, holds: Callable[[Any], bool]) -> T:
    """The object, which looks like this when the controllers are at rest."""
    await at_rest()
    found = await server.client.get(kind, name, namespace)
    assert holds(found), f"{kind.__name__} {namespace}/{name} never got there"
    return found


async def refused(server: Server, pod: Pod) -> str:
    """Why, when the controllers are at rest."""
    await at_rest()
    with pytest.raises(ApiError) as error:
        await server.client.create(pod, dry_run=True)
    return str(error.value)


async def gone(server: Server, kind: type[Any], name: str, namespace: str = "") -> None:
    await at_rest()
    with pytest.raises(ApiError) as error:
        await server.client.get(kind, name, namespace)
    assert error.value.code == 404


async def create_namespace(server: Server, name: str) -> None:
    await server.client.create(Namespace(metadata=ObjectMeta(name=name)))
    await until(server, ServiceAccount, "default", name, lambda _: True)


async def test_a_namespace_gets_its_account_and_the_ca(server: Server) -> None:
    await create_namespace(server, "room")
    config = await until(server, ConfigMap, "kube-root-ca.crt", "room", lambda _: True)
    assert config.data == {"ca.crt": "CERTIFICATE"}


async def test_controllers_have_accounts(server: Server, clock: FakeClock) -> None:
    """Made by the manager; what somebody wrote into one stays."""
    manager = server.as_identity(Identity(MANAGER))
    mine = ServiceAccount(metadata=ObjectMeta(name="job-controller", namespace=KUBE_SYSTEM, labels={"a": "b"}))
    await server.client.create(mine)
    names = ["job-controller", "namespace-controller"]
    task = asyncio.create_task(ControllerAccounts(manager, names, clock=clock).run())
    made = await until(server, ServiceAccount, "namespace-controller", KUBE_SYSTEM, lambda _: True)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    kept = await server.client.get(ServiceAccount, "job-controller", KUBE_SYSTEM)
    assert (kept.metadata.labels, made.secrets, made.metadata.labels) == ({"a": "b"}, (), {})


async def test_what_is_deleted_or_changed_comes_back(server: Server) -> None:
    await create_namespace(server, "room")
    await server.client.delete(ServiceAccount, "default", "room")
    await until(server, ServiceAccount, "default", "room", lambda _: True)
    await until(server, ConfigMap, "kube-root-ca.crt", "room", lambda _: True)
    await server.client.patch(ConfigMap, "kube-root-ca.crt", "room", {"data": {"ca.crt": "forged"}})
    await until(
        server, ConfigMap, "kube-root-ca.crt", "room", lambda configmap: configmap.data == {"ca.crt": "CERTIFICATE"}
    )


async def test_a_deleted_namespace_loses_its_custom_resources(server: Server, clock: FakeClock) -> None:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    names = {"plural": "foos", "kind": "Foo"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    definition = convert({"metadata": {"name": "foos.example.com"}, "spec": spec}, CustomResourceDefinition)
    await server.client.create(definition)
    await create_namespace(server, "room")
    kind = dynamic("example.com", "v1", "foos")
    made = {"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "mine", "namespace": "room"}}
    await server.client.create_in(kind, made)
    await server.client.delete(Namespace, "room")
    await clock.advance(LAST_WRITES)
    await gone(server, Namespace, "room")
    assert not (await server.client.list(kind)).items


async def test_a_deleted_namespace_is_emptied_and_goes(server: Server, clock: FakeClock) -> None:
    await create_namespace(server, "room")
    await server.client.create(ConfigMap(metadata=ObjectMeta(name="mine", namespace="room")))
    await server.client.delete(Namespace, "room")
    held = await server.client.get(Namespace, "room")
    assert held.status.phase == "Terminating"
    with pytest.raises(ApiError, match="because it is being terminated"):
        await server.client.create(ConfigMap(metadata=ObjectMeta(name="late", namespace="room")))
    await clock.advance(LAST_WRITES - 1)
    assert (await server.client.get(ConfigMap, "mine", "room")).metadata.deletion_timestamp is None
    await clock.advance(1)
    await gone(server, Namespace, "room")
    with pytest.raises(ApiError):
        await server.client.get(ConfigMap, "mine", "room")


async def test_a_deleted_namespace_goes_with_the_last_of_what_takes_its_time(server: Server, clock: FakeClock) -> None:
    client = server.client
    await create_namespace(server, "room")
    for name in ("one", "two"):
        meta = {"name": name, "namespace": "room", "finalizers": ["example.com/held"]}
        await client.create(convert({"metadata": meta}, ConfigMap))
    await client.delete(Namespace, "room")
    await clock.advance(LAST_WRITES)
    await until(server, ConfigMap, "two", "room", lambda obj: obj.metadata.deletion_timestamp)
    for name in ("one", "two"):
        assert (await client.get(Namespace, "room")).metadata.deletion_timestamp
        await client.patch(ConfigMap, name, "room", {"metadata": {"finalizers": None}})
    before = clock.monotonic()
    await gone(server, Namespace, "room")
    assert clock.monotonic() == before, "it waited for a timer"


async def test_pods_go_first_and_conditions_say_what_is_left(server: Server, clock: FakeClock) -> None:
    client, held = server.client, ["example.com/held"]
    await create_namespace(server, "room")
    pod = convert(
        {
            "metadata": {"name": "p", "namespace": "room", "finalizers": held},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        },
        Pod,
    )
    await client.create(pod)
    await client.create(convert({"metadata": {"name": "m", "namespace": "room", "finalizers": held}}, ConfigMap))
    await client.delete(Namespace, "room")
    await clock.advance(LAST_WRITES)

    def says(namespace: Namespace) -> dict[str, tuple[str, str, str]]:
        return {
            condition.type: (condition.status, condition.reason, condition.message)
            for condition in namespace.status.conditions
        }

    remaining = "Some resources are remaining: {} has 1 resource instances"
    told = await until(server, Namespace, "room", "", lambda obj: obj.status.conditions)
    assert says(told) == {
        "NamespaceDeletionDiscoveryFailure": ("False", "ResourcesDiscovered", "All resources successfully discovered"),
        "NamespaceDeletionGroupVersionParsingFailure": (
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        "NamespaceDeletionContentFailure": (
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        "NamespaceContentRemaining": ("True", "SomeResourcesRemain", remaining.format("pods.")),
        "NamespaceFinalizersRemaining": (
            "True",
            "SomeFinalizersRemain",
            "Some content in the namespace has finalizers remaining: example.com/held in 1 resource instances",
        ),
    }
    assert not (await client.get(ConfigMap, "m", "room")).metadata.deletion_timestamp
    assert (await client.list(ServiceAccount, "room")).items
    await client.patch(Pod, "p", "room", {"metadata": {"finalizers": None}})
    await until(
        server,
        Namespace,
        "room",
        "",
        lambda obj: (
            says(obj)["NamespaceContentRemaining"] == ("True", "SomeResourcesRemain", remaining.format("configmaps."))
        ),
    )
    await client.patch(ConfigMap, "m", "room", {"metadata": {"finalizers": None}})
    await gone(server, Namespace, "room")


async def test_the_account_does_not_wait_for_the_certificate(server: Server) -> None:
    await server.client.delete(ClusterRoleBinding, "system:controller:root-ca-cert-publisher")
    await create_namespace(server, "room")  # waits for the account
    assert not (await server.client.list(ConfigMap, "room")).items


def a_pod(name: str, cpu: str) -> Pod:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return convert({"metadata": {"name": name, "namespace": "default"}, "spec": {"containers": [container]}}, Pod)


async def test_a_quota_counts_what_is_there_and_credits_what_goes(server: Server) -> None:
    await server.client.create(a_pod("a", "300m"))
    document = {"metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": {"requests.cpu": "1", "pods": "5"}}}
    await server.client.create(convert(document, ResourceQuota))

    def used(cpu: str, pods: str) -> Callable[[ResourceQuota], bool]:
        return lambda quota: (
            {name: str(quantity) for name, quantity in quota.status.used.items()} == {"requests.cpu": cpu, "pods": pods}
        )

    await until(server, ResourceQuota, "q", "default", used("300m", "1"))
    await server.client.create(a_pod("b", "500m"))
    await until(server, ResourceQuota, "q", "default", used("800m", "2"))
    refusal = await refused(server, a_pod("c", "300m"))
    assert "exceeded quota: q, requested: requests.cpu=300m, used: requests.cpu=800m" in refusal
    await server.client.delete(Pod, "a", "default", grace=0)
    await until(server, ResourceQuota, "q", "default", used("500m", "1"))


async def test_a_pod_that_was_stored_after_a_count_is_counted(server: Server) -> None:
    """It was let in before there was a quota, and stored after that was counted: nothing but the pod itself tells."""
    document = {"metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": {"pods": "5"}}}
    await server.client.create(convert(document, ResourceQuota))
    await until(server, ResourceQuota, "q", "default", lambda quota: str(quota.status.used.get("pods")) == "0")
    pod = replace(a_pod("a", "1"), metadata=ObjectMeta(name="a", namespace="default", uid="1"))
    await Stored[Pod](server.context.store, info_for(Pod)).create(pod)
    await until(server, ResourceQuota, "q", "default", lambda quota: str(quota.status.used["pods"]) == "1")


class Contended(StoreLayer):
    """The quota `b` was written by somebody else just before it is charged for the first time."""

    armed = True

    def _shown(self, record: Record) -> Record:
        return record

    def _kept(self, key: str, value: bytes) -> bytes:
        return value

    async def create(self, key: str, value: bytes, *, along: Sequence[Companion] = ()) -> Record:
        if any(companion.key.endswith("/resourcequotas/default/b") for companion in along) and self.armed:
            self.armed = False
            raise CompanionConflict
        return await super().create(key, value, along=along)


async def test_a_pod_is_charged_once_to_each_quota(tmp_path: Path) -> None:
    async with running_server(tmp_path, store=Contended(memory_store())) as server:
        await server.account("default", certificate=True)
        for name in ("a", "b"):
            document = {"metadata": {"name": name, "namespace": "default"}, "spec": {"hard": {"pods": "1"}}}
            await server.client.create(convert(document, ResourceQuota))
        await server.client.create(a_pod("mine", "1"))
        found = (await server.client.list(ResourceQuota, "default")).items
        assert [str(quota.status.used["pods"]) for quota in found] == ["1", "1"]


async def test_a_namespace_stays_while_who_serves_a_kind_is_away(server: Server, clock: FakeClock) -> None:
    spec = {
        "group": "example.org",
        "version": "v1",
        "service": {"namespace": "x", "name": "away"},
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "insecureSkipTLSVerify": True,
    }
    await server.client.create(convert({"metadata": {"name": "v1.example.org"}, "spec": spec}, APIService))
    await at_rest()
    assert (await served(server.client, "list")).silent
    await create_namespace(server, "room")
    await server.client.create(ConfigMap(metadata=ObjectMeta(name="mine", namespace="room")))
    await server.client.delete(Namespace, "room")
    await clock.advance(LAST_WRITES + 3)
    assert not (await server.client.list(ConfigMap, "room")).items
    assert (await server.client.get(Namespace, "room")).metadata.deletion_timestamp
    await server.client.delete(APIService, "v1.example.org")
    await at_rest()
    assert not (await served(server.client, "list")).silent
    await clock.advance(ASK_AGAIN)
    await gone(server, Namespace, "room")


async def test_aggregated_roles_follow_their_parts_through_several_steps(server: Server) -> None:
    """What joins `view` comes to `edit` and `admin` as well, since these gather one another, and leaves them again."""
    rule = PolicyRule(verbs=("get",), api_groups=("example.org",), resources=("things",))
    labels = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
    await server.client.create(ClusterRole(metadata=ObjectMeta(name="things", labels=labels), rules=(rule,)))
    for name in ("view", "edit", "admin"):
        await until(server, ClusterRole, name, "", lambda role: rule in role.rules)
    await server.client.delete(ClusterRole, "things")
    for name in ("view", "edit", "admin"):
        await until(server, ClusterRole, name, "", lambda role: rule not in role.rules)


async def test_a_claim_stays_while_a_pod_mounts_it(server: Server, clock: FakeClock) -> None:
    client = server.client
    spec: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"metadata": {"name": "c", "namespace": "default"}, "spec": spec}
    await client.create(convert(claim, PersistentVolumeClaim))
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    spec = {"containers": [{"name": "c", "image": "i"}], "volumes": volumes}
    await client.create(convert({"metadata": {"name": "p", "namespace": "default"}, "spec": spec}, Pod))
    await client.create(convert({"metadata": {"name": "q", "namespace": "default"}, "spec": spec}, Pod))
    await client.delete(PersistentVolumeClaim, "c", "default")
    await clock.advance(60)
    await client.patch(Pod, "q", "default", {"status": {"phase": "Succeeded"}}, subresource="status")
    await clock.advance(60)
    assert (await client.get(PersistentVolumeClaim, "c", "default")).metadata.deletion_timestamp
    before = clock.monotonic()
    await client.delete(Pod, "p", "default", grace=0)
    await gone(server, PersistentVolumeClaim, "c", "default")
    assert clock.monotonic() == before, "it waited for a timer"


async def test_a_volume_stays_while_it_is_bound(server: Server, clock: FakeClock) -> None:
    client = server.client
    spec = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}
    await client.create(convert({"metadata": {"name": "v"}, "spec": spec}, PersistentVolume))
    await client.patch(PersistentVolume, "v", "", {"status": {"phase": "Bound"}}, subresource="status")
    await client.delete(PersistentVolume, "v")
    await clock.advance(60)
    assert (await client.get(PersistentVolume, "v")).metadata.deletion_timestamp
    await client.patch(PersistentVolume, "v", "", {"status": {"phase": "Released"}}, subresource="status")
    await gone(server, PersistentVolume, "v")


@pytest.mark.parametrize(
    ("who", "may", "may_not"),
    [
        ("namespace-controller", ("update", "namespaces/finalize"), ("create", "configmaps")),
        ("root-ca-cert-publisher", ("create", "configmaps"), ("list", "configmaps")),
        ("service-account-controller", ("create", "serviceaccounts"), ("create", "configmaps")),
        ("resourcequota-controller", ("update", "resourcequotas/status"), ("update", "resourcequotas")),
        ("pvc-protection-controller", ("update", "persistentvolumeclaims"), ("update", "persistentvolumes")),
        ("generic-garbage-collector", ("delete", "pods"), ("create", "pods")),
    ],
)
async def test_a_controller_may_do_its_own_work_and_no_more(
    server: Server, who: str, may: tuple[str, str], may_not: tuple[str, str]
) -> None:
    identity = controller(who)
    for (verb, full), allowed in ((may, True), (may_not, False)):
        resource, _, subresource = full.partition("/")
        asked = {"verb": verb, "resource": resource, "subresource": subresource, "namespace": "default"}
        spec = {"user": identity.user, "groups": list(identity.groups), "resourceAttributes": asked}
        review = await server.client.create(convert({"spec": spec}, SubjectAccessReview))
        assert review.status.allowed is allowed, (verb, full, review.status.reason)


async def test_the_role_that_gave_controllers_everything_is_taken_back(server: Server) -> None:
    """A store of an earlier podfit has it."""
    meta = ObjectMeta(name=RETIRED)
    every = PolicyRule(verbs=("*",), api_groups=("*",), resources=("*",))
    await server.client.create(ClusterRole(metadata=meta, rules=(every,)))
    await bootstrap(server.context)
    with pytest.raises(ApiError, match="not found"):
        await server.client.get(ClusterRole, RETIRED)


async def test_a_deadline_moves_a_pod_between_quotas_of_other_scopes(server: Server) -> None:
    for name, scope in (("ends", "Terminating"), ("stays", "NotTerminating")):
        spec = {"hard": {"pods": "5"}, "scopes": [scope]}
        await server.client.create(
            convert({"metadata": {"name": name, "namespace": "default"}, "spec": spec}, ResourceQuota)
        )
    await server.client.create(a_pod("a", "1m"))
    await until(server, ResourceQuota, "stays", "default", lambda quota: str(quota.status.used.get("pods")) == "1")
    await server.client.patch(Pod, "a", "default", {"spec": {"activeDeadlineSeconds": 60}})
    await until(server, ResourceQuota, "ends", "default", lambda quota: str(quota.status.used.get("pods")) == "1")
    await until(server, ResourceQuota, "stays", "default", lambda quota: str(quota.status.used.get("pods")) == "0")


async def test_any_object_that_goes_is_given_back(server: Server) -> None:
    hard = {"secrets": "5", "count/leases.coordination.k8s.io": "5"}
    document = {"metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": hard}}
    await server.client.create(convert({"metadata": {"name": "s", "namespace": "default"}}, Secret))
    await server.client.create(convert({"metadata": {"name": "l", "namespace": "default"}}, Lease))
    await server.client.create(convert(document, ResourceQuota))

    def uses(number: str) -> Callable[[ResourceQuota], bool]:
        return lambda quota: {str(amount) for amount in quota.status.used.values()} == {number}

    await until(server, ResourceQuota, "q", "default", uses("1"))
    await server.client.delete(Secret, "s", "default")
    await server.client.delete(Lease, "l", "default")
    await until(server, ResourceQuota, "q", "default", uses("0"))
