"""What is exported of pods that were resized, and what counts as drift."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from answers.conversation import pod
from podfit.answers.drift import drift
from podfit.answers.export import Form, document, export
from podfit.answers.facts.ages import Age
from podfit.answers.facts.snapshot import Snapshot
from podfit.answers.facts.target import POD, WORKLOADS, Target
from podfit.answers.plan.amounts import RequestError
from podfit.answers.plan.resize_request import manifest_of
from podfit.api.core.v1.limits.types import LimitRange
from podfit.api.core.v1.pods.types import Pod, PodSpec
from podfit.api.meta.codec import convert
from support.up import run

DEPLOYMENT = Target(WORKLOADS[0], "web")
WAITS: dict[str, Any] = {"conditions": [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]}
SAID = {"requests": {"cpu": "500m", "memory": "256Mi"}, "limits": {"cpu": "500m", "memory": "256Mi"}}


def template(*containers: dict[str, Any], **spec: Any) -> PodSpec:
    listed = containers or ({"name": "app", "image": "i", "resources": SAID},)
    return convert({"containers": listed, **spec}, PodSpec)


def snapshot(*pods: dict[str, Any], **more: Any) -> Snapshot:
    made = tuple(convert(pod, Pod) for pod in pods)
    return Snapshot(age=Age(), namespace="shop", pods=made, **({"template": template()} | more))


def test_a_kustomize_patch_names_its_workload_and_no_namespace() -> None:
    assert document(export(DEPLOYMENT, snapshot(pod(cpu="700m"))), Form.KUSTOMIZE) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "template": {
                "spec": {
                    "containers": [
                        {
                            "name": "app",
                            "resources": {
                                "requests": {"cpu": "700m", "memory": "256Mi"},
                                "limits": {"cpu": "700m", "memory": "256Mi"},
                            },
                        }
                    ]
                }
            }
        },
    }


def test_a_bare_patch_is_what_the_api_takes() -> None:
    sizes = {"requests": {"cpu": "1", "memory": "256Mi"}, "limits": {"cpu": "1", "memory": "256Mi"}}
    spec = {"containers": [{"name": "app", "resources": sizes}]}
    found = snapshot(pod(cpu="1"))
    assert document(export(DEPLOYMENT, found), Form.PATCH) == {"spec": {"template": {"spec": spec}}}
    assert document(export(Target(POD, "web"), snapshot(pod(cpu="1"), template=None)), Form.PATCH) == {"spec": spec}


def test_helm_values_are_by_container_when_there_are_several() -> None:
    one = snapshot(pod(cpu="1"))
    values = document(export(DEPLOYMENT, one), Form.HELM)
    assert values["resources"]["requests"] == {"cpu": "1", "memory": "256Mi"}
    two = pod(cpu="1")
    two["spec"]["containers"].append({"name": "log", "image": "i", "resources": {"requests": {"cpu": "10m"}}})
    two["spec"]["resources"] = {"requests": {"cpu": "2"}}
    values = document(export(Target(POD, "web"), snapshot(two, template=None)), Form.HELM)
    assert values["log"] == {"resources": {"requests": {"cpu": "10m"}}}
    assert values["app"]["resources"]["limits"]["cpu"] == "1"
    assert values["podResources"] == {"requests": {"cpu": "2"}}
    two["spec"]["containers"][1]["resources"] = {}
    values = document(export(Target(POD, "web"), snapshot(two, template=None)), Form.HELM)
    assert sorted(values) == ["app", "podResources"], "one container of two has sizes, and they are its own"


def test_what_waits_is_not_exported_but_told() -> None:
    found = export(DEPLOYMENT, snapshot(pod(cpu="2", allocated="500m", **WAITS)))
    assert found.sizes[0].requests == {"cpu": "500m", "memory": "256Mi"}
    assert 'web waits: "app" cpu request 2 is asked for, 500m is granted and exported' in found.notes


def test_a_granted_resize_is_exported_whole_while_the_node_is_at_it() -> None:
    progress: dict[str, Any] = {"conditions": [{"type": "PodResizeInProgress", "status": "True"}]}
    document_ = pod(cpu="2", **progress)
    document_["status"]["containerStatuses"][0]["resources"]["limits"]["cpu"] = "500m"
    assert export(DEPLOYMENT, snapshot(document_)).sizes[0].limits["cpu"] == "2"


def test_pods_that_differ_give_the_largest_and_it_is_said() -> None:
    found = export(DEPLOYMENT, snapshot(pod("web-1", cpu="900m"), pod("web-2", cpu="1"), pod("web-3", cpu="1000m")))
    assert found.sizes[0].requests["cpu"] == found.sizes[0].limits["cpu"] == "1"
    assert found.notes[0].startswith('pods differ: "app" cpu request is 900m (web-1), 1 (web-2')
    assert found.notes[0].endswith("the largest is exported")
    assert not export(DEPLOYMENT, snapshot(pod("web-1", cpu="1"), pod("web-2", cpu="1"))).notes


def test_amounts_written_otherwise_do_not_differ() -> None:
    assert not export(DEPLOYMENT, snapshot(pod("web-2", cpu="1"), pod("web-3", cpu="1000m"))).notes


def test_a_pod_without_a_limit_has_the_largest_one() -> None:
    free = pod("web-2", cpu="700m")
    free["spec"]["containers"][0]["resources"]["limits"] = {"memory": "256Mi"}
    free["status"]["containerStatuses"][0]["resources"]["limits"] = {"memory": "256Mi"}
    found = export(DEPLOYMENT, snapshot(pod("web-1"), free))
    assert found.sizes[0].limits == {"cpu": None, "memory": "256Mi"}
    assert any('"app" cpu limit is 500m (web-1), none (1 more)' in note for note in found.notes)


def test_pods_that_go_or_have_no_node_yet_have_no_say() -> None:
    goes, unplaced = pod("web-1", cpu="3"), pod("web-2", cpu="3", spec={"nodeName": ""})
    goes["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert export(DEPLOYMENT, snapshot(goes, unplaced, pod("web-3"))).pods == ("web-3",)


def test_a_container_that_a_webhook_added_is_left_out() -> None:
    injected = pod()
    injected["spec"]["containers"].append({"name": "proxy", "image": "i", "resources": {"requests": {"cpu": "1"}}})
    found = export(DEPLOYMENT, snapshot(injected))
    assert [size.container for size in found.sizes] == ["app"]
    assert found.notes == ('container "proxy" is not in the template (a webhook adds it?) and is left out',)
    against = drift(DEPLOYMENT, snapshot(injected))
    assert (against.drifted, len(against.notes)) == (False, 1)


def test_an_export_laid_over_the_template_ends_the_drift() -> None:
    found = snapshot(pod("web-1", cpu="900m", memory="300Mi"), pod("web-2", cpu="900m", memory="300Mi"))
    assert drift(DEPLOYMENT, found).drifted
    patched = document(export(DEPLOYMENT, found), Form.PATCH)["spec"]["template"]["spec"]["containers"][0]
    again = drift(DEPLOYMENT, found, manifest=template({"image": "i", **patched}))
    assert (again.drifted, again.differences, again.pods) == (False, (), 2)


@pytest.mark.kubectl
def test_kustomize_takes_the_patch(tmp_path: Path) -> None:
    """Also the limit that it takes away, and in a namespace that only the overlay knows."""
    free = pod("web-2", cpu="700m")
    free["spec"]["containers"][0]["resources"]["limits"] = {"memory": "256Mi"}
    free["status"]["containerStatuses"][0]["resources"]["limits"] = {"memory": "256Mi"}
    container = {"name": "app", "image": "i", "resources": SAID, "args": ["serve"]}
    base = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }
    overlay = {"namespace": "shop", "resources": ["base.yaml"], "patches": [{"path": "sizes.yaml"}]}
    sizes = document(export(DEPLOYMENT, snapshot(free)), Form.KUSTOMIZE)
    files = {"base": base, "sizes": sizes, "kustomization": overlay}
    for name, content in files.items():
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(content))
    built = run("kubectl", "kustomize", str(tmp_path))
    assert built.code == 0, built.err
    made = yaml.safe_load(built.out)
    assert made["metadata"]["namespace"] == "shop"
    assert made["spec"]["template"]["spec"]["containers"] == [
        container | {"resources": {"requests": {"cpu": "700m", "memory": "256Mi"}, "limits": {"memory": "256Mi"}}}
    ]
    assert not drift(DEPLOYMENT, snapshot(free), manifest=manifest_of([made], DEPLOYMENT)).drifted


def test_drift_tells_every_amount_of_every_pod() -> None:
    found = drift(DEPLOYMENT, snapshot(pod("web-1"), pod("web-2", cpu="2", allocated="1", **WAITS)))
    told = [
        (difference.pod, difference.side, difference.template, difference.desired, difference.allocated)
        for difference in found.differences
    ]
    assert told == [("web-2", "requests", "500m", "2", "1"), ("web-2", "limits", "500m", "2", "1")]


def test_a_pod_that_waits_at_the_size_of_the_template_has_drifted() -> None:
    assert drift(DEPLOYMENT, snapshot(pod(cpu="500m", allocated="1", **WAITS))).drifted


def test_defaults_of_the_api_and_of_limit_ranges_are_no_drift() -> None:
    only_limits = template({"name": "app", "image": "i", "resources": {"limits": SAID["limits"]}})
    assert not drift(DEPLOYMENT, snapshot(pod(), template=only_limits)).drifted
    limits = [{"type": "Container", "default": SAID["limits"], "defaultRequest": SAID["requests"]}]
    policy = convert({"metadata": {"name": "policy"}, "spec": {"limits": limits}}, LimitRange)
    bare = template({"name": "app", "image": "i"})
    assert not drift(DEPLOYMENT, snapshot(pod(), template=bare, limit_ranges=(policy,))).drifted
    assert drift(DEPLOYMENT, snapshot(pod(), template=bare)).drifted


def test_a_pod_has_a_template_only_in_a_manifest() -> None:
    with pytest.raises(RequestError, match="name its manifest with -f"):
        drift(Target(POD, "web"), snapshot(pod(), template=None))
    assert not drift(Target(POD, "web"), snapshot(pod(), template=None), manifest=template(), name="web.yaml").drifted


MANIFEST = """
kind: Service
metadata: {name: web}
---
kind: Deployment
metadata: {name: web}
spec: {template: {spec: {containers: [{name: app, image: i}]}}}
---
kind: Pod
metadata: {name: web}
spec: {containers: [{name: alone, image: i}]}
---
kind: Pod
metadata: {name: broken}
"""


def test_a_manifest_may_have_many_documents() -> None:
    documents = list(yaml.safe_load_all(MANIFEST))
    assert manifest_of(documents, DEPLOYMENT).containers[0].name == "app"
    assert manifest_of(documents, Target(POD, "web")).containers[0].name == "alone"
    with pytest.raises(RequestError, match='no document is Deployment "other"'):
        manifest_of(documents, Target(WORKLOADS[0], "other"))
    with pytest.raises(RequestError, match="Pod \"broken\" cannot be read: no field 'spec'"):
        manifest_of(documents, Target(POD, "broken"))
