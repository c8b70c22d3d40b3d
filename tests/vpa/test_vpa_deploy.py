"""What deploy/ puts into a cluster: the package's definitions and rights, and processes that may do little."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from podfit.cli.app import program
from podfit.process.vpa.objects import VPA
from support.eventually import PATIENCE

ROOT = Path(__file__).parents[2]
BASE = ROOT / "deploy" / "vpa"
PACKAGE = ROOT / "src" / "podfit" / "api" / "manifests"
PROCESSES = ("recommender", "updater", "admission-controller")


def documents() -> list[dict[str, Any]]:
    names = yaml.safe_load((BASE / "kustomization.yaml").read_text())["resources"]
    return [document for name in names for document in yaml.safe_load_all((BASE / name).read_text())]


def deployment(name: str) -> dict[str, Any]:
    (found,) = (
        document
        for document in documents()
        if document["kind"] == "Deployment" and document["metadata"]["name"] == f"vpa-{name}"
    )
    pod: dict[str, Any] = found["spec"]["template"]["spec"]
    return pod


@pytest.mark.parametrize(("ours", "packaged"), list(zip(("crds.yaml", "roles.yaml"), VPA.manifests, strict=False)))
def test_vpa_base_has_what_the_package_has(ours: str, packaged: str) -> None:
    assert (BASE / ours).read_text() == (PACKAGE / packaged).read_text()


@pytest.mark.parametrize("name", PROCESSES)
def test_vpa_processes_may_do_little(name: str) -> None:
    pod = deployment(name)
    (container,) = pod["containers"]
    assert pod["serviceAccountName"] == f"vpa-{name}"
    assert (pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["runAsUser"]) == (True, 65534)
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert container["livenessProbe"]["httpGet"] == {"path": "/livez", "port": "health", "scheme": "HTTPS"}
    assert f"--secure-port={ports['health']}" in container["args"]


@pytest.mark.row("V-120")
@pytest.mark.parametrize("name", PROCESSES)
def test_vpa_processes_are_called_with_flags_that_there_are(name: str) -> None:
    (container,) = deployment(name)["containers"]
    command, bound, _ = program().parse_args(container["args"], exit_on_error=False, print_error=False)
    assert command.__name__.replace("_", "-") == name
    assert bound.kwargs["bind_address"] == "0.0.0.0"


def test_vpa_webhook_is_behind_its_service() -> None:
    services = {
        document["metadata"]["name"]: document["spec"] for document in documents() if document["kind"] == "Service"
    }
    assert services["vpa-webhook"]["ports"] == [{"name": "webhook", "port": 443, "targetPort": "webhook"}]
    assert services["vpa-recommender"]["ports"] == [{"name": "https", "port": 443, "targetPort": "api"}]


def test_vpa_recommender_is_asked_by_who_may_and_writes_one_object_more() -> None:
    """Rights as in the package; the API server checks its certificate; it may write into its own APIService."""
    found = {
        (one["kind"], one["metadata"]["name"]): one
        for one in yaml.safe_load_all((BASE / "recommendations.yaml").read_text())
    }
    packaged = list(yaml.safe_load_all((PACKAGE / "podrecommendations.yaml").read_text()))
    for document in packaged[:2]:
        assert found[document["kind"], document["metadata"]["name"]] == document
    served, alike = found["APIService", "v1alpha1.recommender.podfit.dev"], packaged[3]
    assert served["spec"] == {key: value for key, value in alike["spec"].items() if key != "insecureSkipTLSVerify"}
    (rule,) = found["ClusterRole", "podfit:podrecommendations-server"]["rules"]
    assert (rule["verbs"], rule["resourceNames"]) == (["patch"], ["v1alpha1.recommender.podfit.dev"])
    (port,) = (port for port in deployment("recommender")["containers"][0]["ports"] if port["name"] == "api")
    assert f"--api-port={port['containerPort']}" in deployment("recommender")["containers"][0]["args"]


@pytest.mark.row("V-124")
def test_vpa_rights_are_no_more_than_upstreams_and_the_condition() -> None:
    """Verbs by account, of what is written; all else is reading."""
    writes: dict[str, set[str]] = {}
    for document in yaml.safe_load_all((BASE / "roles.yaml").read_text()):
        for rule in document.get("rules", ()) if document["kind"] in ("Role", "ClusterRole") else ():
            changing = set(rule["verbs"]) - {"get", "list", "watch"}
            for resource in rule["resources"] if changing else ():
                writes.setdefault(document["metadata"]["name"], set()).update(f"{verb} {resource}" for verb in changing)
    assert writes == {
        "podfit:vpa-recommender": {
            "patch verticalpodautoscalers/status",
            "create verticalpodautoscalercheckpoints",
            "patch verticalpodautoscalercheckpoints",
            "delete verticalpodautoscalercheckpoints",
        },
        "podfit:vpa-updater": {
            "patch pods",
            "patch pods/resize",
            "create pods/eviction",
            "create events",
            "patch events",
            "patch verticalpodautoscalers/status",
        },
        "podfit:vpa-admission-controller": {
            "create mutatingwebhookconfigurations",
            "patch mutatingwebhookconfigurations",
        },
        "podfit:vpa-leases": {"create leases", "update leases"},
    }


@pytest.mark.kubectl
def test_vpa_base_is_built_by_kubectl() -> None:
    done = subprocess.run(
        ["kubectl", "kustomize", str(BASE)], capture_output=True, text=True, check=False, timeout=60 * PATIENCE
    )
    assert done.returncode == 0, done.stderr
    kinds = [document["kind"] for document in yaml.safe_load_all(done.stdout)]
    assert (kinds.count("Deployment"), kinds.count("CustomResourceDefinition")) == (3, 2)
    assert "image: podfit:0.1.0" in done.stdout
