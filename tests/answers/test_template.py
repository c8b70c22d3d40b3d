"""The template gets the sizes of its pods, with or without a rollout, and it is known which before anything is done."""

import asyncio
from typing import Any

import pytest

from answers.conversation import pod
from answers.workshop import APPS, OWNER, SIZES, Workshop, template
from podfit.actions.change_template import dry_run_template, retemplate
from podfit.actions.resize_pods import Options, Outcome
from podfit.answers.facts.target import WORKLOADS, parse_target
from podfit.answers.plan.amounts import parse_amount
from podfit.answers.plan.resize_request import BEFORE, ResizeRequest
from podfit.answers.plan.template import (
    REFUSED,
    ROLLS_OUT,
    STORED,
    UNCHANGED,
    TemplatePlan,
    read_workload,
    template_plan,
)
from podfit.net.wire import Request, Response

CPU = ResizeRequest({"cpu": parse_amount("--cpu", "700m")})
GROWN = {"requests": {"cpu": "700m", "memory": "256Mi"}, "limits": {"cpu": "700m", "memory": "256Mi"}}


async def planned(shop: Workshop, target: str = "deploy/web", request: ResizeRequest = CPU) -> TemplatePlan:
    return template_plan(await read_workload(shop.client, parse_target(target, *WORKLOADS), "shop"), request)


async def done(
    shop: Workshop,
    target: str = "deploy/web",
    request: ResizeRequest = CPU,
    *,
    disrupt: bool = False,
    dry_run: bool = False,
) -> Outcome:
    workload = await read_workload(shop.client, parse_target(target, *WORKLOADS), "shop")
    how = Options(disrupt=disrupt, dry_run=dry_run)
    return await retemplate(shop.client, workload, request, template_plan(workload, request), "shop", how)


@pytest.fixture
def shop() -> Workshop:
    shop = Workshop()
    shop.add_deployment()
    return shop


async def test_a_deployment_keeps_its_pods(shop: Workshop) -> None:
    told = await planned(shop)
    assert (told.verdict, told.good) == (STORED, True)
    assert "no rollout: replicaset/web-abc gets the same template" in told.text
    assert [(change.side, change.before, change.after) for change in told.changes] == [
        ("requests", "500m", "700m"),
        ("limits", "500m", "700m"),
    ]
    assert shop.writes == [], "a plan writes nothing"
    assert (await done(shop)).state == "done"
    assert shop.sizes("deployments") == shop.sizes("replicasets", "web-abc") == GROWN
    assert (shop.rollouts, shop.at("deployments")["spec"].get("paused")) == (0, None)
    assert BEFORE in shop.at("deployments")["metadata"]["annotations"]
    assert "annotations" not in shop.at("deployments")["spec"]["template"]["metadata"]
    assert shop.writes[0][1]["metadata"]["resourceVersion"] == "7", "not over somebody else's change"


async def test_there_and_back_again(shop: Workshop) -> None:
    await done(shop)
    undo = ResizeRequest(undo=True)
    assert (await planned(shop, request=undo)).verdict == STORED
    assert (await done(shop, request=undo)).state == "done"
    assert shop.sizes("deployments") == shop.sizes("replicasets", "web-abc") == SIZES
    assert (shop.rollouts, shop.at("deployments")["metadata"]["annotations"]) == (0, {})
    assert (await planned(shop, request=undo)).text == "podfit has not changed it"


@pytest.mark.parametrize(
    "changed", [{"uid": "e"}, {"name": "other"}, {"kind": "Rack"}, {"apiVersion": "example.org/v1"}]
)
async def test_a_replica_set_that_names_another_deployment_is_not_behind_it(
    shop: Workshop, changed: dict[str, str]
) -> None:
    (owner,) = shop.at("replicasets", "web-abc")["metadata"]["ownerReferences"]
    shop.at("replicasets", "web-abc")["metadata"]["ownerReferences"] = [owner | changed]
    assert (await planned(shop)).verdict == ROLLS_OUT


async def test_amounts_that_were_not_there_before_go_again(shop: Workshop) -> None:
    for kind, name in (("deployments", "web"), ("replicasets", "web-abc")):
        del shop.sizes(kind, name)["limits"]
    await done(shop, request=ResizeRequest({"cpu": parse_amount("--cpu", "700m:1")}))
    assert shop.sizes("deployments")["limits"] == {"cpu": "1"}
    await done(shop, request=ResizeRequest(undo=True))
    assert shop.sizes("deployments").get("limits", {}) == shop.sizes("replicasets", "web-abc").get("limits", {}) == {}
    assert shop.rollouts == 0


async def test_a_paused_deployment_stays_paused(shop: Workshop) -> None:
    shop.at("deployments")["spec"]["paused"] = True
    shop.at("deployments")["status"]["updatedReplicas"] = 0
    assert (await done(shop)).state == "done"
    assert shop.at("deployments")["spec"]["paused"] is True
    shop.at("deployments")["spec"]["paused"] = None
    shop.control()
    assert shop.rollouts == 0, "resuming it later begins none either"


async def test_a_version_that_is_no_longer_the_newest_is_read_again(shop: Workshop) -> None:
    shop.refuse["web"] = "the object has been modified"
    assert (await done(shop)).state == "done"
    assert (shop.rollouts, shop.sizes("deployments")) == (0, GROWN)


async def test_what_somebody_else_has_changed_meanwhile_is_left_alone(shop: Workshop) -> None:
    workload = await read_workload(shop.client, parse_target("deploy/web", *WORKLOADS), "shop")
    shop.at("deployments")["status"]["updatedReplicas"] = 1
    deed = await retemplate(shop.client, workload, CPU, template_plan(workload, CPU), "shop", Options())
    assert (deed.state, deed.text) == ("refused", "it was changed meanwhile: a rollout is under way")
    assert shop.writes == []


@pytest.mark.parametrize("refused", ["web-abc", "web"])
async def test_what_goes_wrong_leaves_things_as_they_were(shop: Workshop, refused: str) -> None:
    shop.refuse[refused] = "not allowed by policy"
    deed = await done(shop)
    assert (deed.state, "not allowed by policy" in deed.text) == ("refused", True)
    assert shop.sizes("deployments") == shop.sizes("replicasets", "web-abc") == SIZES
    assert (shop.rollouts, shop.at("deployments")["spec"].get("paused")) == (0, None)
    assert BEFORE not in shop.at("deployments")["metadata"].get("annotations", {})


@pytest.mark.parametrize("error", [ConnectionResetError("the server went away"), asyncio.CancelledError()])
async def test_who_is_cut_off_half_way_leaves_things_as_they_were(error: BaseException) -> None:
    class Cut(Workshop):
        armed = True

        async def send(self, request: Request) -> Response:
            if request.method == "PATCH" and request.path.endswith("replicasets/web-abc") and self.armed:
                self.armed = False
                raise error
            return await super().send(request)

    shop = Cut()
    shop.add_deployment()
    if isinstance(error, ConnectionError):
        assert (await done(shop)).text == "the server went away; the template is as it was"
    else:
        with pytest.raises(asyncio.CancelledError):
            await done(shop)
    assert shop.sizes("deployments") == shop.sizes("replicasets", "web-abc") == SIZES
    assert (shop.rollouts, shop.at("deployments")["spec"].get("paused")) == (0, None)


async def test_a_webhook_that_changes_one_of_them_is_noticed_before_the_controller_looks(shop: Workshop) -> None:
    class Meddled(Workshop):
        async def send(self, request: Any) -> Any:
            answer = await super().send(request)
            if request.method == "PATCH" and request.path.endswith("replicasets/web-abc") and b"700m" in request.body:
                self.sizes("replicasets", "web-abc")["limits"]["cpu"] = "9"
            return answer

    meddled = Meddled()
    meddled.add_deployment()
    deed = await done(meddled)
    assert (deed.state, "not stored with the same template" in deed.text) == ("refused", True)
    assert meddled.sizes("deployments") == meddled.sizes("replicasets", "web-abc") == SIZES
    assert meddled.rollouts == 0


async def test_a_deployment_that_cannot_be_resumed_is_said_to_be_paused(shop: Workshop) -> None:
    class Stubborn(Workshop):
        async def send(self, request: Any) -> Any:
            if request.method == "PATCH" and b'"paused":null' in request.body:
                self.refuse["web"] = "gone away"
            return await super().send(request)

    stubborn = Stubborn()
    stubborn.add_deployment()
    deed = await done(stubborn)
    assert deed.state == "failed"
    assert "is left paused (gone away): kubectl rollout resume deployment/web" in deed.text


@pytest.mark.parametrize(
    ("spec", "status", "verdict", "text"),
    [
        ({}, {"updatedReplicas": 1}, REFUSED, "a rollout is under way"),
        ({}, {"replicas": 3}, REFUSED, "a rollout is under way"),
        ({}, {"observedGeneration": 0}, REFUSED, "no controller has seen this Deployment yet, so none would follow"),
        ({"template": template(hostNetwork=True)}, {}, ROLLS_OUT, "the ReplicaSet behind it is not known"),
    ],
)
async def test_deployments_that_are_not_at_rest(
    shop: Workshop, spec: dict[str, Any], status: dict[str, Any], verdict: str, text: str
) -> None:
    shop.at("deployments")["spec"].update(spec)
    shop.at("deployments")["status"].update(status)
    told = await planned(shop)
    assert (told.verdict, text in told.text) == (verdict, True)


async def test_a_change_that_its_controller_has_not_seen_may_become_a_rollout(shop: Workshop) -> None:
    shop.at("deployments")["metadata"]["generation"] = 2
    told = await planned(shop)
    assert (told.verdict, told.fix) == (REFUSED, "kubectl rollout status deployment/web")
    assert told.text == "its controller has seen generation 1 of 2: a rollout may be about to begin"


async def test_without_the_right_to_see_replica_sets_it_would_be_a_rollout() -> None:
    shop = Workshop(forbidden=(f"{APPS}/replicasets",))
    shop.add_deployment()
    told = await planned(shop)
    assert (told.verdict, "pods is forbidden" in told.text) == (ROLLS_OUT, True)
    assert (await done(shop)).state == "refused"
    assert shop.rollouts == 0
    assert (await done(shop, disrupt=True)).state == "done"
    assert (shop.rollouts, shop.sizes("deployments")) == (1, GROWN)


ROLLING = {"type": "RollingUpdate"}


def from_the(partition: int) -> dict[str, Any]:
    return {"updateStrategy": {**ROLLING, "rollingUpdate": {"partition": partition}}}


@pytest.mark.parametrize(
    ("kind", "spec", "verdict", "text"),
    [
        ("statefulsets", {"updateStrategy": ROLLING}, ROLLS_OUT, "a rollout replaces every pod"),
        ("statefulsets", {"updateStrategy": {"type": "OnDelete"}}, STORED, "OnDelete"),
        ("statefulsets", from_the(2), STORED, "partition 2 holds all pods"),
        ("statefulsets", from_the(1), ROLLS_OUT, "from ordinal 1 on"),
        ("statefulsets", {**from_the(1), "ordinals": {"start": 3}}, ROLLS_OUT, "from ordinal 4 on"),
        ("statefulsets", {**from_the(2), "ordinals": {"start": 3}}, STORED, "partition 2 holds all pods"),
        ("daemonsets", {"updateStrategy": ROLLING}, ROLLS_OUT, "a rollout replaces every pod"),
        ("daemonsets", {"updateStrategy": {"type": "OnDelete"}}, STORED, "OnDelete"),
        ("replicasets", {}, STORED, "a ReplicaSet never replaces pods"),
    ],
)
async def test_other_kinds(kind: str, spec: dict[str, Any], verdict: str, text: str) -> None:
    shop = Workshop()
    document = {"metadata": {"name": "web"}, "spec": {"replicas": 2, "selector": {}, "template": template(), **spec}}
    shop.add(kind, document)
    target = f"{kind}/web"
    told = await planned(shop, target)
    assert (told.verdict, text in told.text) == (verdict, True)
    assert bool(told.fix) == (verdict == ROLLS_OUT), "one command that holds it back"
    assert (await done(shop, target)).state == ("done" if verdict == STORED else "refused")
    assert (shop.sizes(kind) == GROWN) == (verdict == STORED)
    assert (await done(shop, target, disrupt=True)).good


async def test_an_older_replica_set_of_the_new_template_is_gone_back_to(shop: Workshop) -> None:
    """The controller takes the oldest of a template: both get it, and yet a rollout begins."""
    grown = template()
    grown["spec"]["containers"][0]["resources"] = GROWN
    grown["metadata"]["labels"]["pod-template-hash"] = "old"
    older = {
        "name": "web-old",
        "namespace": "shop",
        "ownerReferences": [OWNER],
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    shop.at("replicasets", "web-abc")["metadata"]["creationTimestamp"] = "2026-01-02T00:00:00Z"
    shop.add("replicasets", {"metadata": older, "spec": {"replicas": 0, "template": grown}})
    told = await planned(shop)
    assert told.verdict == ROLLS_OUT
    assert told.text.endswith("replicaset/web-old, which is older, has this template already")
    assert (await done(shop)).state == "refused"
    older["creationTimestamp"] = "2026-01-03T00:00:00Z"
    assert (await planned(shop)).verdict == STORED


async def test_what_cannot_be_changed_at_all(shop: Workshop) -> None:
    told = await planned(shop, "rs/web-abc")
    assert (told.verdict, told.text) == (REFUSED, "its template is managed by deployment/web: resize that instead")
    document = {"metadata": {"name": "web"}, "spec": {"template": template()}}
    shop.documents["/apis/batch/v1/namespaces/shop/jobs/web"] = document
    assert (await planned(shop, "job/web")).text == "the template of a Job cannot be changed"
    other = await planned(shop, request=ResizeRequest({"cpu": parse_amount("--cpu", "1")}, "sidecar"))
    assert (other.verdict, 'no container "sidecar"' in other.text) == (REFUSED, True)
    same = await planned(shop, request=ResizeRequest({"cpu": parse_amount("--cpu", "500m")}))
    assert same.verdict == UNCHANGED
    assert (await done(shop, request=ResizeRequest({"cpu": parse_amount("--cpu", "500m")}))).state == "unchanged"
    assert shop.writes == []


async def test_a_rehearsal_stores_nothing_and_hears_every_refusal(shop: Workshop) -> None:
    workload = await read_workload(shop.client, parse_target("deploy/web", *WORKLOADS), "shop")
    assert await dry_run_template(shop.client, workload, CPU, "shop") == ""
    assert (await done(shop, dry_run=True)).state == "accepted"
    assert [dry for _, _, dry in shop.writes] == [True] * 4
    assert shop.sizes("deployments") == SIZES
    shop.forbidden = (f"{APPS}/replicasets/web-abc",)
    assert "is forbidden" in await dry_run_template(shop.client, workload, CPU, "shop")


async def test_a_pod_of_the_whole_has_a_template_of_the_whole() -> None:
    level = {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}
    shop = Workshop(36, pod("web-1", spec={"resources": level}))
    shop.add_deployment(template=template(resources=level))
    shop.at("replicasets", "web-abc")["spec"]["template"]["spec"]["resources"] = {
        "requests": {"cpu": "1"},
        "limits": {"cpu": "1"},
    }
    assert (await done(shop, request=ResizeRequest({"cpu": parse_amount("--cpu", "2")}))).state == "done"
    for kind, name in (("deployments", "web"), ("replicasets", "web-abc")):
        assert shop.at(kind, name)["spec"]["template"]["spec"]["resources"]["limits"] == {"cpu": "2"}
    assert shop.rollouts == 0
