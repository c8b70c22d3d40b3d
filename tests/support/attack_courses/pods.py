"""Pods that ask a node for too much, and containers that plant links where the node reads and writes.

The node is simulated, its directories are real: what a container would plant in a volume or in place of its log is
planted here.
"""

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from support.attack_courses.course import MAPS, PODS, Course, Scene

SECRET = b"only the host knows this"
RECORD = b"2026-01-01T00:00:00.5Z stdout F " + SECRET + b"\n"
NODE = "data/kubelet/simulated-1"
PROXY = "/api/v1/nodes/simulated-1/proxy"


@contextmanager
def pod(scene: Scene, *containers: dict[str, Any], **spec: Any) -> Iterator[tuple[str, str]]:
    """Its name and uid; deleted at the end."""
    name = scene.name()
    given = [{"name": f"c{number}", "image": "x", **container} for number, container in enumerate(containers)]
    made = scene.send("POST", PODS, {"metadata": {"name": name}, "spec": {"containers": given, **spec}}, {201}).json()
    try:
        yield name, made["metadata"]["uid"]
    finally:
        scene.send("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0", None, {200, 404})


def states(scene: Scene, name: str) -> list[dict[str, Any]]:
    status = scene.send("GET", f"{PODS}/{name}", None, {200}).json()["status"]
    return [container.get("state", {}) for container in status.get("containerStatuses", [])]


def waits(scene: Scene, name: str, reason: str) -> str:
    """The message of a container that waits for this reason."""

    def found() -> str:
        waiting = [state["waiting"] for state in states(scene, name) if "waiting" in state]
        return next((state.get("message", " ") for state in waiting if state.get("reason") == reason), "")

    return str(scene.until(found, f"{name} waits: {reason}"))


def runs(scene: Scene, name: str) -> None:
    scene.until(lambda: any("running" in state for state in states(scene, name)), f"{name} runs")


def refused(scene: Scene, container: dict[str, Any], **spec: Any) -> None:
    with pod(scene, container, **spec) as (name, _):
        waits(scene, name, "CreateContainerConfigError")


def doubling(scene: Scene, count: int) -> list[dict[str, Any]]:
    first = {"name": "E0", "value": "x" * scene.chance.randint(1, 1000)}
    return [first, *({"name": f"E{n}", "value": f"$(E{n - 1})" * 2} for n in range(1, count))]


def variables(scene: Scene) -> None:
    refused(scene, {"env": doubling(scene, scene.chance.randint(30, 400))})
    refused(scene, {"env": [{"name": "A", "value": "x" * scene.chance.randint(1 << 17, 1 << 19)}]})
    refused(scene, {"env": doubling(scene, 8), "command": ["$(E7)" * 3000]})


def environments(scene: Scene) -> None:
    long = {"name": "L", "value": "x" * 120_000}
    refused(scene, {"env": [long, *({"name": f"V{n}", "value": "$(L)"} for n in range(scene.count(1000) + 20))]})
    refused(scene, {"env": [long], "args": ["$(L)"] * (scene.count(2000) + 20)})


EMPTY = [{"name": "e", "emptyDir": {}}]


def mounted(**more: Any) -> dict[str, Any]:
    return {"volumeMounts": [{"name": "e", "mountPath": "/e", **more}]}


def expanded_paths(scene: Scene) -> None:
    mount = mounted(subPathExpr="a/$(E7)/" * 5)
    refused(scene, {"env": doubling(scene, 8), **mount}, volumes=EMPTY)


def mounts(scene: Scene) -> None:
    many = [{"name": "e", "mountPath": f"/e{number}"} for number in range(scene.chance.randint(1001, 1200))]
    refused(scene, {"volumeMounts": many}, volumes=EMPTY)


def sub_paths(scene: Scene) -> None:
    """A container exchanges a directory and a link to the host while another is started again and again."""
    refused(scene, mounted(subPath="a/" * scene.chance.randint(257, 1500)), volumes=EMPTY)
    outside = scene.directory / "outside"
    outside.mkdir(exist_ok=True)
    crashing = {"command": ["sleep", "1"], **mounted(subPath="a/made")}
    with pod(scene, {}, crashing, volumes=EMPTY) as (name, uid):
        runs(scene, name)
        volume = scene.victim.root / NODE / "pods" / uid / "volumes/kubernetes.io~empty-dir/e"
        stop = threading.Event()

        def exchange() -> None:
            while not stop.wait(0.0005):
                with suppress(OSError):
                    shutil.rmtree(volume / "a", ignore_errors=True)
                    (volume / "a").symlink_to(scene.chance.choice((str(outside), "../../../../../outside", "a")))
                    (volume / "a").unlink()

        exchanging = threading.Thread(target=exchange)
        exchanging.start()
        try:
            scene.until(lambda: restarts(scene, name) >= 1, f"{name} is tried again")
        finally:
            stop.set()
            exchanging.join()
    assert list(outside.iterdir()) == []


def restarts(scene: Scene, name: str) -> int:
    """How often its second container was started again, or could not be."""
    status = scene.send("GET", f"{PODS}/{name}", None, {200}).json()["status"]
    second: dict[str, Any] = status["containerStatuses"][1]
    waiting = second.get("state", {}).get("waiting", {}).get("reason", "")
    return int(second["restartCount"]) + int(waiting == "CreateContainerConfigError")


def _map(scene: Scene, keys: int, size: int) -> str:
    name = scene.name()
    data = {f"k{number}": "x" * size for number in range(keys)}
    scene.send("POST", MAPS, {"metadata": {"name": name}, "data": data}, {201})
    return name


def _projected(name: str, copies: int, mib: int) -> dict[str, Any]:
    """Copies of one ConfigMap of a MiB, each under another path."""
    item = {"key": "k0"}
    sources = [{"configMap": {"name": name, "items": [item | {"path": f"{copies}-{number}"}]}} for number in range(mib)]
    return {"name": f"p{copies}", "projected": {"sources": sources}}


def failed_mount(scene: Scene, volumes: list[dict[str, Any]]) -> None:
    paths = [{"name": volume["name"], "mountPath": f"/{volume['name']}"} for volume in volumes]
    with pod(scene, {"volumeMounts": paths}, volumes=volumes) as (name, _):
        events = f"/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3D{name}"

        def told() -> bool:
            found = scene.send("GET", events, None, {200}).json()["items"]
            return any(event["reason"] == "FailedMount" for event in found)

        scene.until(told, f"{name}: FailedMount")


def files_of_a_volume(scene: Scene) -> None:
    many = _map(scene, scene.chance.randint(10_001, 12_000), 0)
    failed_mount(scene, [{"name": "v", "configMap": {"name": many}}])
    large = _map(scene, 1, 1_000_000)
    failed_mount(scene, [_projected(large, 0, scene.chance.randint(35, 60))])
    for name in (many, large):
        scene.send("DELETE", f"{MAPS}/{name}", None, {200})


def files_of_a_pod(scene: Scene) -> None:
    large = _map(scene, 1, 1_000_000)
    failed_mount(scene, [_projected(large, number, 30) for number in range(scene.chance.randint(5, 8))])
    scene.send("DELETE", f"{MAPS}/{large}", None, {200})


def plant(scene: Scene, place: Path, content: bytes) -> bool:
    """In place of a file of the node, by chance: whether the node may tell what is there."""
    elsewhere = scene.directory / "secret"
    elsewhere.write_bytes(RECORD)
    place.unlink(missing_ok=True)
    match scene.chance.choice(("link", "fifo", "directory", "huge", "pieces")):
        case "link":
            place.symlink_to(elsewhere)
        case "fifo":
            os.mkfifo(place)
        case "directory":
            place.mkdir()
        case "huge":
            with place.open("wb") as file:
                file.write(content)
                file.truncate(scene.count(1 << 29))
            return True
        case "pieces":
            place.write_bytes(b"2026-01-01T00:00:00.5Z stdout P " + b"x" * scene.count(20_000_000) + b"\n" + content)
            return True
    return False


def logs(scene: Scene) -> None:
    for _ in range(max(2, scene.count(12))):
        with pod(scene, {}) as (name, uid):
            runs(scene, name)
            (folder,) = (scene.victim.root / NODE / "logs/pods").glob(f"*_{uid}")
            readable = plant(scene, folder / "c0" / "0.log", b"2026-01-01T00:00:00.5Z stdout F plain\n")
            query = scene.chance.choice(("tailLines=3", "limitBytes=100000", "tailLines=1&timestamps=true"))
            for path in (f"{PODS}/{name}/log?{query}", f"{PROXY}/containerLogs/default/{name}/c0?{query}"):
                answer = scene.send("GET", path, None, {200, 500})
                assert SECRET not in answer.body
                assert (answer.status == 200) is readable
            remove(folder / "c0" / "0.log")


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)


def messages(scene: Scene) -> None:
    for _ in range(max(2, scene.count(6))):
        ends = {"command": ["sleep", "1"], "terminationMessagePolicy": "FallbackToLogsOnError"}
        with pod(scene, ends, restartPolicy="Never") as (name, uid):
            runs(scene, name)
            (file,) = (scene.victim.root / NODE / "pods" / uid / "containers/c0").iterdir()
            plant(scene, file, b"plain")

            def ended(name: str = name) -> Any:
                return next((state["terminated"] for state in states(scene, name) if "terminated" in state), None)

            told = scene.until(ended, f"{name} ends").get("message", "")
            assert SECRET.decode() not in told
            assert len(told.encode()) <= 3 * 4096  # what is not UTF-8 is shown as three bytes each
            remove(file)


def many_files(scene: Scene) -> None:
    with pod(scene, mounted(), volumes=EMPTY) as (name, uid):
        runs(scene, name)
        home = scene.victim.root / NODE / "pods" / uid
        volume = home / "volumes/kubernetes.io~empty-dir/e"
        for number in range(scene.count(20_000)):
            (volume / f"f{number}").touch()
        deep = volume
        for _ in range(200):
            deep /= "d"
            deep.mkdir()
        (volume / "l").symlink_to(scene.directory)
    scene.until(lambda: not home.exists(), f"{name} is removed")
    assert scene.directory.exists()


SERVED = (
    "/containerLogs/default/{0}/c0?tailLines={1}",
    "/containerLogs/default/{0}/c0?sinceSeconds={1}&limitBytes={1}",
    "/containerLogs/default/{0}/%2e%2e",
    "/containerLogs/..%2f..%2f/{0}/c0",
    "/exec/default/{0}/c0?command=" + "a" * 30_000,
    "/exec/default/{0}/c0?" + "command=a&" * 3000,
    "/attach/default/{0}/c0",
    "/portForward/default/{0}?port={1}",
    "/run/default/{0}/c0?cmd=a",
    "/pods?{1}",
    "/metrics/{1}",
    "/stats/summary?only_cpu_and_memory={1}",
    "/logs/../../../etc/passwd",
    "/logs/..%2f..%2fetc/passwd",
    "/configz",
    "/debug/pprof/profile?seconds={1}",
)


def server(scene: Scene) -> None:
    """The node's own server, through the API server."""
    with pod(scene, {}) as (name, _):
        runs(scene, name)
        for _ in range(scene.count(150)):
            path = scene.chance.choice(SERVED).format(name, scene.chance.choice((-1, 0, 2**31, 2**63, "9" * 5000, "x")))
            method = scene.chance.choice(("GET", "GET", "POST", "PUT", "DELETE"))
            answer = scene.send(method, PROXY + path, b"x" * 100_000 if method != "GET" else None)
            assert b"root:" not in answer.body


# ------------------------------------------------------------------ a disk that does not answer


def hanging_disk(scene: Scene) -> None:
    """Sizes change while the node's disk takes no more writes: the node says so, and goes on when it does again."""
    name = scene.name()
    scene.send("POST", PODS, {"metadata": {"name": name}, "spec": _sized(100)}, {201})
    scene.until(lambda: _cpu(scene, name) == "100m", f"{name} runs")
    with scene.victim.hanging_disk():
        for cpu in (scene.chance.randint(160, 900) for _ in range(5)):
            _resize(scene, name, cpu)
        scene.until(lambda: _disk(scene) == "True", "the node says that its disk does not answer")
        scene.send("GET", "/readyz", None, {200})
        assert _cpu(scene, name) == "100m"
    _resize(scene, name, 200)
    scene.until(lambda: _disk(scene) == "False" and _cpu(scene, name) == "200m", "the node goes on")
    scene.send("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0", None, {200})


def _sized(cpu: int) -> dict[str, Any]:
    return {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": f"{cpu}m"}}}]}


def _resize(scene: Scene, name: str, cpu: int) -> None:
    scene.send("PATCH", f"{PODS}/{name}/resize", {"spec": _sized(cpu)}, {200}, "application/strategic-merge-patch+json")


def _cpu(scene: Scene, name: str) -> str | None:
    """That its container really has."""
    status = scene.send("GET", f"{PODS}/{name}", None, {200}).json()["status"]
    found: list[str | None] = [
        container.get("resources", {}).get("requests", {}).get("cpu")
        for container in status.get("containerStatuses", ())
    ]
    return found[0] if found else None


def _disk(scene: Scene) -> str | None:
    conditions = scene.send("GET", "/api/v1/nodes/simulated-1", None, {200}).json()["status"]["conditions"]
    return next((condition["status"] for condition in conditions if condition["type"] == "UnresponsiveDisk"), None)


COURSES = (
    Course("variables", ("one variable",), variables),
    Course("environments", ("environment, command and args",), environments),
    Course("expanded sub-paths", ("`subPathExpr`",), expanded_paths),
    Course("sub-paths that change", ("sub-path",), sub_paths),
    Course("mounts", ("volume mounts",), mounts),
    Course("files of a volume", ("files that the kubelet writes into one",), files_of_a_volume, stored_mib=10),
    Course("files of a pod", ("the same in all volumes",), files_of_a_pod, stored_mib=10),
    Course("termination messages", ("termination message",), messages),
    Course("logs", ("log line", "numbers in a query"), logs),
    Course("many files of a pod that goes", ("files of a pod that goes",), many_files),
    Course("a disk that does not answer", ("a write of the kubelet",), hanging_disk, long=True),
    Course("the node's server", ("numbers in a query",), server),
)
