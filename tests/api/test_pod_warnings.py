"""What clients are warned of, with inputs that no recorded case has; what is expected follows from upstream's rules."""

from functools import partial
from typing import Any

import pytest

from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.pods.validation.warnings import pod_warnings
from support.rules_of_kinds import made
from support.turns import growth

BETA = "failure-domain.beta.kubernetes.io/zone"
TERM = {"topologyKey": "z"}
SOON = "requiredDuringSchedulingIgnoredDuringExecution"


def warned(**spec: Any) -> list[str]:
    containers = spec.pop("containers", [{"name": "c", "image": "i"}])
    pod = made({"metadata": {"name": "p"}, "spec": {"containers": containers, **spec}}, Pod)
    return [text.removeprefix("spec.") for text in pod_warnings(pod.metadata, pod.spec)]


def container(**fields: Any) -> list[str]:
    texts = warned(containers=[{"name": "c", "image": "i", **fields}])
    return [text.removeprefix("containers[0].") for text in texts]


@pytest.mark.parametrize(
    ("spec", "texts"),
    [
        (
            {"nodeSelector": {BETA: "a"}},
            [f'nodeSelector[{BETA}]: deprecated since v1.17; use "topology.kubernetes.io/zone" instead'],
        ),
        (
            {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]},
            ["topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod"],
        ),
        (
            {"affinity": {"podAntiAffinity": {SOON: [TERM]}}},
            [f"affinity.podAntiAffinity.{SOON}[0].labelSelector: a null labelSelector results in matching no pod"],
        ),
        ({"hostAliases": [{"ip": "::1"}, {"ip": "::1"}]}, ['hostAliases[1].ip: duplicate ip "::1"']),
        (
            {"hostAliases": [{"ip": "0::1"}]},
            ['hostAliases[0].ip: IPv6 address "0::1" should be in RFC 5952 canonical format ("::1")'],
        ),
        (
            {"imagePullSecrets": [{"name": "a"}, {"name": "a"}, {"name": ""}]},
            ['imagePullSecrets[1].name: duplicate name "a"', 'imagePullSecrets[2].name: invalid empty name ""'],
        ),
        (
            {"terminationGracePeriodSeconds": -3},
            ["terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"],
        ),
        (
            {"volumes": [{"name": "v", "projected": {"sources": [{}]}}]},
            ['volume "v" (Projected) has no sources provided'],
        ),
        (
            {
                "volumes": [
                    {
                        "name": "v",
                        "configMap": {"name": "m", "items": [{"key": "a", "path": "x"}, {"key": "b", "path": "x/y"}]},
                    }
                ]
            },
            ['volume "v" (ConfigMap "m"): overlapping paths: "x/y" with "x"'],
        ),
        (
            {"volumes": [{"name": "v", "gitRepo": {"repository": "r"}}]},
            ["volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+"],
        ),
    ],
)
def test_pods(spec: dict[str, Any], texts: list[str]) -> None:
    assert warned(**spec) == texts


HIDES = 'hides previous definition of "A", which may be dropped when using apply'


@pytest.mark.parametrize(
    ("fields", "texts"),
    [
        (
            {"resources": {"requests": {"memory": "1500m"}}},
            ['resources.requests[memory]: fractional byte value "1500m" is invalid, must be an integer'],
        ),
        ({"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "$(A)2"}]}, []),
        ({"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "$(A)"}]}, [f"env[1]: {HIDES}"]),
        (
            {"ports": [{"containerPort": 80, "hostIP": "1.2.3.4"}]},
            ["ports[0]: hostIP set without hostPort: {Name: HostPort:0 ContainerPort:80 Protocol:TCP HostIP:1.2.3.4}"],
        ),
        (
            {
                "ports": [
                    {"containerPort": 80, "hostPort": 1},
                    {"containerPort": 80, "hostPort": 1, "hostIP": "1.2.3.4"},
                ]
            },
            ["ports[1]: dangerously ambiguous port definition with spec.containers[0].ports[0]"],
        ),
        (
            {"ports": [{"containerPort": 80, "hostPort": 1}, {"containerPort": 80}]},
            ["ports[1]: overlapping port definition with spec.containers[0].ports[0]"],
        ),
    ],
)
def test_containers(fields: dict[str, Any], texts: list[str]) -> None:
    assert container(**fields) == texts


def test_many_ports_and_files_take_linear_time() -> None:
    def asked(count: int) -> None:
        ports = [{"containerPort": 80} for _ in range(count)]
        items = [{"key": "k", "path": "a/b"} for _ in range(count)]
        texts = container(ports=ports)
        files = warned(volumes=[{"name": "v", "configMap": {"name": "m", "items": items}}])
        assert (len(texts) < 16 * count, len(files)) == (True, 32)

    assert growth(lambda count: partial(asked, count), 500) < 8**1.5
