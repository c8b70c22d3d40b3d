"""Names, confinement, groups and files of pods, as the runtime is told of them."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kubelet.harness import Node, container
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.kubelet.pods.configs import MASKED, READ_ONLY, has_end
from podfit.kubelet.runtime.configs import ContainerConfig, SandboxConfig, SecurityContext, SecurityProfile
from podfit.kubelet.runtime.cri import to_cri
from podfit.kubelet.sources.lookup import Missing
from podfit.kubelet.sources.services import ServiceVariables


def security(node: Node) -> SecurityContext:
    return node.runtime.config("c1").security


def read(path: Path) -> str:
    return path.read_text()


def volume(node: Node, name: str) -> Path:
    return next(node.config.root.glob(f"pods/web/volumes/*/{name}"))


async def test_a_pod_has_a_hosts_file_of_its_own(node: Node) -> None:
    node.add(hostAliases=[{"ip": "10.1.1.1", "hostnames": ["db"]}])
    await node.runs()
    mount = next(mount for mount in node.runtime.config("c1").mounts if mount.container_path == "/etc/hosts")
    text = read(Path(mount.host_path))
    assert "10.0.0.1\tweb\n" in text
    assert "10.1.1.1\tdb\n" in text


async def test_a_hosts_file_that_the_pod_mounts_is_left_to_it(node: Node) -> None:
    mounts = [{"name": "v", "mountPath": "/etc/hosts"}]
    node.add(volumes=[{"name": "v", "emptyDir": {}}], containers=[container("c1", volumeMounts=mounts)])
    await node.runs()
    found = [mount for mount in node.runtime.config("c1").mounts if mount.container_path == "/etc/hosts"]
    assert [Path(mount.host_path).name for mount in found] == ["v"]


def told_of_services(node: Node, name: str) -> set[str]:
    return {variable for variable, _ in node.runtime.config(name).envs if variable.endswith("_SERVICE_HOST")}


async def test_services_of_the_namespace_are_variables_of_the_container(node: Node) -> None:
    for name, namespace in (("web-1", "default"), ("other", "elsewhere")):
        spec = {"clusterIP": "10.96.3.4", "ports": [{"port": 80, "protocol": "TCP"}]}
        node.api.put("services", {"metadata": {"name": name, "namespace": namespace}, "spec": spec})
    node.add()
    await node.runs()
    assert told_of_services(node, "c1") == {"WEB_1_SERVICE_HOST"}
    node.add("quiet", enableServiceLinks=False, containers=[container("c2")])
    await node.runs("quiet")
    assert told_of_services(node, "c2") == set()


async def test_only_a_static_pod_starts_before_the_services_are_known(node: Node) -> None:
    services = ServiceVariables(node.client, node.clock, api_server="", follow=True)
    pod = convert({"metadata": {"name": "web"}}, Pod)
    with pytest.raises(Missing, match="services have not yet been read at least once, cannot construct envvars"):
        services.of(pod, static=False)
    assert services.of(pod, static=True) == {}


async def test_a_resolver_of_its_own(node: Node) -> None:
    node.add(dnsPolicy="None", dnsConfig={"nameservers": ["10.0.0.53"], "options": [{"name": "ndots", "value": "3"}]})
    await node.runs()
    dns = next(iter(node.runtime.boxes.values()))[1].dns
    assert dns is not None
    assert (dns.servers, dns.searches, dns.options) == (("10.0.0.53",), (), ("ndots:3",))


@pytest.mark.parametrize(
    ("own", "shared", "profile"),
    [
        ({}, {}, None),
        ({}, {"seccompProfile": {"type": "RuntimeDefault"}}, SecurityProfile(kind="RuntimeDefault")),
        (
            {"seccompProfile": {"type": "Unconfined"}},
            {"seccompProfile": {"type": "RuntimeDefault"}},
            SecurityProfile(kind="Unconfined"),
        ),
        ({"privileged": True}, {"seccompProfile": {"type": "RuntimeDefault"}}, SecurityProfile(kind="Unconfined")),
    ],
)
async def test_seccomp(
    node: Node, own: dict[str, Any], shared: dict[str, Any], profile: SecurityProfile | None
) -> None:
    node.add(securityContext=shared, containers=[container("c1", securityContext=own)])
    await node.runs()
    assert security(node).seccomp == profile
    hidden = not own.get("privileged")
    assert security(node).masked_paths == (MASKED if hidden else ())
    assert security(node).readonly_paths == (READ_ONLY if hidden else ())


async def test_a_profile_of_the_nodes(node: Node) -> None:
    profile = {"type": "Localhost", "localhostProfile": "audit.json"}
    node.add(containers=[container("c1", securityContext={"seccompProfile": profile, "procMount": "Unmasked"})])
    await node.runs()
    assert security(node).seccomp == SecurityProfile(
        kind="Localhost", file=str(node.config.root / "seccomp/audit.json")
    )
    assert security(node).masked_paths == ()


async def test_a_confinement_that_cannot_be_had_is_refused(node: Node) -> None:
    node.add(securityContext={"appArmorProfile": {"type": "RuntimeDefault"}})
    await node.until(lambda: node.state().get("state", {}).get("waiting", {}).get("message"))
    waiting = node.state()["state"]["waiting"]
    assert waiting["reason"] == "CreateContainerConfigError"
    assert waiting["message"].startswith("Cannot enforce AppArmor")


LABELS = [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]
LIMIT = {"containerName": "c1", "resource": "limits.memory"}


async def test_files_belong_to_the_group_of_the_pod(node: Node) -> None:
    volumes = [{"name": "e", "emptyDir": {}}, {"name": "d", "downwardAPI": {"items": LABELS, "defaultMode": 0o400}}]
    node.add(securityContext={"fsGroup": 2000}, volumes=volumes)
    await node.runs()
    assert volume(node, "e").stat().st_mode & 0o7777 == 0o2777
    assert volume(node, "d").joinpath("labels").stat().st_mode & 0o777 == 0o440


async def test_files_follow_the_pod_within_a_second(node: Node) -> None:
    items = [*LABELS, {"path": "limit", "resourceFieldRef": LIMIT}]
    memory = {"requests": {"memory": "64Mi"}, "limits": {"memory": "64Mi"}}
    node.add(volumes=[{"name": "d", "downwardAPI": {"items": items}}], containers=[container("c1", resources=memory)])
    await node.runs()
    assert volume(node, "d").joinpath("limit").read_text() == str(64 << 20)
    pod = node.api.get("pods", "web")
    assert pod is not None
    pod["metadata"] |= {"labels": {"a": "b"}, "generation": 2}
    larger = {"requests": {"memory": "96Mi"}, "limits": {"memory": "96Mi"}}
    pod["spec"]["containers"][0]["resources"] = larger
    node.api.put("pods", pod)
    await node.advance(1)
    assert volume(node, "d").joinpath("labels").read_text() == 'a="b"'
    assert volume(node, "d").joinpath("limit").read_text() == str(96 << 20)


@pytest.mark.parametrize(
    ("asked", "supported", "shown"),
    [
        ("Enabled", True, "Enabled"),
        ("IfPossible", True, "Enabled"),
        ("IfPossible", False, "Disabled"),
        ("Disabled", True, "Disabled"),
    ],
)
async def test_what_is_mounted_below_a_read_only_mount(node: Node, asked: str, supported: bool, shown: str) -> None:
    node.runtime.recursive_read_only = supported
    mount = {"name": "v", "mountPath": "/v", "readOnly": True, "recursiveReadOnly": asked}
    node.add(volumes=[{"name": "v", "emptyDir": {}}], containers=[container("c1", volumeMounts=[mount])])
    await node.runs()
    told = next(mount for mount in node.runtime.config("c1").mounts if mount.container_path == "/v")
    assert (told.readonly, told.recursive_read_only) == (True, shown == "Enabled")
    assert node.state()["volumeMounts"][0]["recursiveReadOnly"] == shown


async def test_a_recursive_mount_that_the_runtime_cannot_make_is_refused(node: Node) -> None:
    node.runtime.recursive_read_only = False
    mount = {"name": "v", "mountPath": "/v", "readOnly": True, "recursiveReadOnly": "Enabled"}
    node.add(volumes=[{"name": "v", "emptyDir": {}}], containers=[container("c1", volumeMounts=[mount])])
    await node.until(
        lambda: "waiting" in node.state().get("state", {}) and "message" in node.state()["state"]["waiting"]
    )
    assert node.state()["state"]["waiting"] == {
        "reason": "CreateContainerConfigError",
        "message": 'failed to resolve recursive read-only mode: volume "v" requested recursive read-only mode, '
        "but it is not supported by the runtime",
    }


async def test_the_runtime_is_told_that_init_containers_have_an_end(node: Node) -> None:
    node.add(initContainers=[container("first")])
    await node.until(lambda: node.runtime.calls[-1:] == ["start first"])
    assert node.runtime.config("first").has_end


def test_containers_of_a_job_have_an_end_and_their_sidecars_none() -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
    spec = {"containers": [container("c")], "initContainers": [container("s", restartPolicy="Always")]}
    pod = convert({"metadata": {"name": "j-1", "ownerReferences": [owner]}, "spec": spec}, Pod)
    assert [has_end(pod, one) for one in (*pod.spec.containers, *pod.spec.init_containers)] == [True, False]


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ({}, "web"),
        ({"hostname": "db-0"}, "db-0"),
        ({"hostname": "db-0", "subdomain": "db"}, "db-0"),
        ({"hostname": "db-0", "subdomain": "db", "setHostnameAsFQDN": True}, "db-0.db.default.svc.cluster.local"),
        ({"hostNetwork": True, "hostname": "db-0"}, ""),
    ],
)
async def test_a_container_is_told_its_pods_name(node: Node, spec: dict[str, Any], name: str) -> None:
    node.add(**spec)
    await node.runs()
    config = node.runtime.config("c1")
    assert dict(config.envs).get("HOSTNAME", "") == name
    files = [mount.host_path for mount in config.mounts if mount.container_path == "/etc/hostname"]
    assert [await asyncio.to_thread(Path(file).read_text) for file in files] == ([f"{name}\n"] if name else [])


async def test_a_variable_of_its_own_counts_more(node: Node) -> None:
    node.add(containers=[container("c1", env=[{"name": "HOSTNAME", "value": "mine"}])])
    await node.runs()
    assert dict(node.runtime.config("c1").envs)["HOSTNAME"] == "mine"


@pytest.mark.parametrize("kind", ["containers", "initContainers", "ephemeralContainers"])
async def test_a_privileged_container_comes_with_a_sandbox_that_says_so(node: Node, kind: str) -> None:
    """A runtime goes by the configuration that is in the call, also when the sandbox was made by another."""
    said: dict[str, bool] = {}
    create = node.runtime.create_container

    async def created(sandbox_id: str, config: ContainerConfig, sandbox: SandboxConfig) -> str:
        said[config.name] = to_cri.sandbox_config(sandbox).linux.security_context.privileged
        return await create(sandbox_id, config, sandbox)

    node.runtime.create_container = created  # type: ignore[method-assign]
    node.add("plain")
    special = container("special", securityContext={"privileged": True})
    spec: dict[str, Any] = {"containers": [container("c2")], kind: [special]}
    node.add(**spec)
    await node.until(lambda: {"c1", "special"} <= said.keys())
    assert (said["c1"], said["special"]) == (False, True)
