"""A random situation for `podfit resize`, what its plan promises, and what then happens.

Several pods of one ReplicaSet on a node that decides for itself, with what stands around them on a real cluster:
disruption budgets, LimitRanges with defaults, a VPA and an HPA, and somebody who may read only his namespace. Sizes
come from options and from manifests that leave things out, and after them all pods go back (`--undo`).
"""

import random
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from importlib.resources import files
from typing import Any

import yaml

from actions.shop import NAMESPACE, Shop, promise
from podfit.actions.resize_pods import Options, Outcome, difference, may_begin
from podfit.answers.facts.snapshot import Reader, Snapshot
from podfit.answers.facts.target import POD, Target
from podfit.answers.plan.amounts import Amount, RequestError
from podfit.answers.plan.plan import PodRequest
from podfit.answers.plan.read_plan import Planned
from podfit.answers.plan.resize_request import ResizeRequest, apply, can_undo, from_template
from podfit.answers.plan.result import DEFERRED, FITS, INFEASIBLE, NOT_KNOWN, PROTECTED, REFUSED, UNCHANGED, PodPlan
from podfit.answers.plan.several_targets import merged
from podfit.api.apiextensions.v1.types import CustomResourceDefinition
from podfit.api.apps.v1.deployments import ReplicaSet
from podfit.api.autoscaling.v2.types import HorizontalPodAutoscaler
from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.core.v1.limits.types import LimitRange
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert, to_dict
from podfit.api.meta.owners import reference_to
from podfit.api.policy.v1.types import PodDisruptionBudget
from podfit.client.rest import MERGE_PATCH, Client
from podfit.client.vpa_kinds import VPAS
from podfit.core.errors import ApiError
from podfit.core.quantity import Quantity
from podfit.decide.autoscaling.published import IN_UP
from podfit.vpa.updater.settings import UpdaterSettings
from podfit.vpa.updater.updater import Updater
from support.access import JANE, grant, rule, send
from support.background import beside

DEFINITIONS = (files("podfit.api") / "manifests" / "verticalpodautoscalers.yaml").read_text()
DEVELOPER = (
    rule("get list watch patch update", "pods pods/resize limitranges resourcequotas"),
    rule("get list", "replicasets", "apps"),
    rule("get list", "poddisruptionbudgets", "policy"),
    rule("get list", "horizontalpodautoscalers", "autoscaling"),
    rule("get list", "verticalpodautoscalers", "autoscaling.k8s.io"),
)
TARGET = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"}
BEYOND = "node didn't have enough allocatable resources"
DONE = {FITS: "done", UNCHANGED: "unchanged", DEFERRED: "waits"}


class Deeds:
    def __init__(self, seed: int, shop: Shop) -> None:
        self.seed, self.random, self.shop = seed, random.Random(seed), shop
        self.names = [f"p{number}" for number in range(self.random.randint(1, 5))]
        self.restricted, self.scaled = seed % 4 == 1, seed % 3 == 0
        self.client: Client = shop.client

    # ------------------------------------------------------------------ what there is

    async def prepare(self) -> None:
        create, namespace = self.shop.client.create, {"namespace": NAMESPACE}
        template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "app", "image": "i"}]}}
        spec = {"replicas": len(self.names), "selector": {"matchLabels": {"app": "web"}}, "template": template}
        made = await create(convert({"metadata": {"name": "web", **namespace}, "spec": spec}, ReplicaSet))
        for name in self.names:
            await create(convert(self._pod(name, made), Pod))
            await self.shop.node.advance(2)
        for number in range(self.random.choice((0, 0, 0, 1, 1, 2))):
            await self._budget(f"b{number}")
        if self.random.random() < 0.4:
            defaults = {"default": {"memory": "300Mi"}, "defaultRequest": {"memory": "100Mi"}}
            document = {"metadata": {"name": "l", **namespace}, "spec": {"limits": [{"type": "Container", **defaults}]}}
            await create(convert(document, LimitRange))
        if self.scaled:
            await self._autoscalers()
        if self.restricted:
            await grant(self.shop.server, *DEVELOPER)
            self.client = self.shop.server.as_identity(JANE)

    def _pod(self, name: str, owner: ReplicaSet) -> dict[str, Any]:
        pick = self.random.choice
        requests = {"cpu": pick(("100m", "400m", "900m"))} | pick(({}, {"memory": "100Mi"}, {"memory": "200Mi"}))
        limits: dict[str, str] = pick(({}, {}, {"cpu": "1"}, {"memory": "256Mi"}, dict(requests)))
        policy = [
            {"resourceName": resource, "restartPolicy": pick(("NotRequired", "RestartContainer"))}
            for resource in ("cpu", "memory")
        ]
        resources = {"requests": requests, "limits": limits}
        container = {"name": "app", "image": "app:1", "resources": resources, "resizePolicy": policy}
        gates = [{"conditionType": "example.com/never"}] if self.random.random() < 0.3 else []
        meta = {"name": name, "namespace": NAMESPACE, "labels": {"app": "web", "pod": name}}
        meta["ownerReferences"] = [to_dict(reference_to(owner))]
        return {"metadata": meta, "spec": {"nodeName": "n1", "containers": [container], "readinessGates": gates}}

    async def _budget(self, name: str) -> None:
        pick = self.random.choice
        labels = pick(({"app": "web"}, {"pod": self.names[0]}, {"app": "other"}))
        spec = {"minAvailable": 1, "selector": {"matchLabels": labels}}
        spec |= {"unhealthyPodEvictionPolicy": pick(("IfHealthyBudget", "AlwaysAllow"))}
        made = convert({"metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}, PodDisruptionBudget)
        await self.shop.client.create(made)
        healthy = pick((0, 1))
        status = {"disruptionsAllowed": pick((0, 1)), "observedGeneration": 1, "desiredHealthy": 1}
        await self.shop.client.patch(
            PodDisruptionBudget,
            name,
            NAMESPACE,
            {"status": {**status, "currentHealthy": healthy, "expectedPods": 1}},
            subresource="status",
        )

    async def _autoscalers(self) -> None:
        client, pick = self.shop.client, self.random.choice
        for document in yaml.safe_load_all(DEFINITIONS):
            await client.create(convert(document, CustomResourceDefinition))
        await self.shop.node.clock.settle()
        meta = {"name": "web", "namespace": NAMESPACE}
        target = {"cpu": pick(("200m", "600m"))}
        recommended = {
            "containerName": "app",
            "target": target,
            "lowerBound": {"cpu": "100m"},
            "upperBound": {"cpu": "1"},
        }
        mode = pick(("InPlaceOrRecreate", "InPlace", "Off"))
        policy = {"containerPolicies": [{"containerName": "*", "maxAllowed": {"cpu": "600m"}}]}
        spec = {"targetRef": TARGET, "updatePolicy": {"updateMode": mode}, "resourcePolicy": policy}
        vpa = convert({"metadata": meta, "spec": spec}, VerticalPodAutoscaler)
        await client.create_in(VPAS, vpa)
        status = {"recommendation": {"containerRecommendations": [recommended]}}
        await client.patch(VPAS, "web", NAMESPACE, {"status": status}, content_type=MERGE_PATCH, subresource="status")
        metric = {
            "type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
        }
        hpa = {"metadata": meta, "spec": {"scaleTargetRef": TARGET, "maxReplicas": 4, "metrics": [metric]}}
        await client.create(convert(hpa, HorizontalPodAutoscaler))

    # ------------------------------------------------------------------ what is asked, and what becomes of it

    def requests(self) -> Iterator[ResizeRequest]:
        yield self._request()
        yield self._request()
        yield ResizeRequest(undo=True)

    def _request(self) -> ResizeRequest:
        pick = self.random.choice
        cpu, memory = pick((None, "50m", "500m", "1200m", "1800m", "1800m", "5")), pick((None, None, "128Mi", "300Mi"))
        if self.random.random() < 0.4:
            amounts = {name: text for name, text in (("cpu", cpu), ("memory", memory)) if text}
            resources = {"requests": amounts, "limits": pick(({}, {}, {"memory": "512Mi"}))}
            container = {"name": "app", "image": "i", "resources": resources}
            return from_template(convert({"spec": {"containers": [container]}}, Pod))
        limit = pick((None, None, "2"))
        asked = {"cpu": Amount(Quantity.parse(cpu or "300m"), Quantity.parse(limit) if limit else None)}
        return ResizeRequest(asked | ({"memory": Amount(Quantity.parse(memory))} if memory else {}))

    async def look(self) -> Snapshot:
        reader = Reader(self.client, NAMESPACE, self.shop.node.clock)
        return merged([await reader.read(Target(POD, name), usage=True) for name in self.names])

    async def play(self) -> AsyncIterator[str]:
        for request in self.requests():
            snapshot = await self.look()
            if request.undo and not any(map(can_undo, snapshot.pods)):
                return
            with suppress(RequestError):
                async for kind in self._compared(promise(snapshot, request)):
                    yield f"undo {kind}" if request.undo else kind

    async def _compared(self, promised: Planned) -> AsyncIterator[str]:
        plan, options = promised.plan, Options(wait=True, timeout=20)
        where = f"seed {self.seed}: {promised.requests[0].asked}"
        if not all(may_begin(pod, options) for pod in plan.pods):
            for pod in plan.pods:
                yield await self._kept(pod, promised, where)
            return
        before = {pod.metadata.name: _restarts(pod) for pod in promised.snapshot.pods}
        outcomes = await self.shop.carried_out(promised, options, moves=120, client=self.client)
        told = [pod for pod in plan.pods if pod.pod in {outcome.pod for outcome in outcomes}]
        assert [outcome.pod for outcome in outcomes] == [pod.pod for pod in told], f"{where}: {outcomes}"
        assert len(told) == len(plan.pods) or outcomes[-1].ends, f"{where}: {outcomes}"
        for planned, outcome in zip(told, outcomes, strict=True):
            again = _restarts(await self.shop.pod(planned.pod)) - before[planned.pod]
            self._same(planned, outcome, again, f"{where}: promised {planned}, became {outcome}, {again} restarts")
            if planned.verdict == DEFERRED:  # as it was tried last, when all were asked; what is not sent is not tried
                tried = outcome.text if planned.repeated else _waits_for(await self.shop.pod(planned.pod))
                assert tried == planned.text, f"{where}: {planned}"
            yield planned.verdict
        async for kind in self._taken_back(promised):
            yield kind

    def _same(self, planned: PodPlan, outcome: Outcome, again: int, where: str) -> None:
        if planned.verdict == NOT_KNOWN:
            assert outcome.state in ("done", "waits") or BEYOND in outcome.text, where
        elif not planned.repeated:
            assert outcome.state == DONE[planned.verdict], where
        if planned.verdict == FITS:
            assert again == len(planned.restarts), where
        if planned.verdict in (FITS, NOT_KNOWN) and outcome.state == "done":
            assert list(map(str, planned.sizes)) == list(map(str, outcome.sizes)), where
        if planned.verdict == DEFERRED:
            assert again == 0, where

    async def _kept(self, planned: PodPlan, promised: Planned, where: str) -> str:
        """What was not begun would be refused by the API, or by its eviction."""
        wanted = next(wanted for wanted in promised.requests if wanted.pod.metadata.name == planned.pod)
        if planned.verdict == PROTECTED:
            path = f"/api/v1/namespaces/{NAMESPACE}/pods/{planned.pod}/eviction"
            body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": planned.pod}}
            code, _ = await send(self.shop.server, "POST", path, body | {"deleteOptions": {"dryRun": ["All"]}})
            assert code != 201, f"{where}: {planned}"
        if planned.verdict in (REFUSED, PROTECTED, FITS, DEFERRED, NOT_KNOWN) and not planned.repeated:
            patch, refused = difference(apply(wanted.asked, wanted.pod), wanted.pod), ""
            try:
                await self.shop.client.patch(Pod, planned.pod, NAMESPACE, patch, subresource="resize", dry_run=True)
            except ApiError as error:
                refused = error.message
            if self.restricted and planned.verdict != REFUSED and BEYOND in refused:  # only the node knows that
                return planned.verdict
            assert refused == (planned.text if planned.verdict == REFUSED else ""), f"{where}: {planned}"
        return planned.verdict

    async def _taken_back(self, promised: Planned) -> AsyncIterator[str]:
        """What the plan says of a VPA is what its updater then does, where every pod came to its size."""
        plan = promised.plan
        moved = any(_cpu(wanted.pod) != _cpu(_wanted(wanted)) for wanted in promised.requests)
        hpa = [note for note in plan.notes if note.startswith("hpa/web ")]
        assert bool(hpa) == (self.scaled and moved), f"seed {self.seed}: {plan}"
        vpa = [note for note in plan.notes if note.startswith("vpa/web ")]
        if not vpa or any(pod.verdict not in (FITS, UNCHANGED) for pod in plan.pods):
            return
        before = {name: (await self.shop.pod(name)).spec for name in self.names}
        clock = self.shop.node.clock
        settings = UpdaterSettings(interval=60, admission=None, rules=IN_UP)
        async with beside(Updater(self.shop.client, clock=clock, settings=settings).run()):
            await clock.settle()
            for _ in range(13):
                await self.shop.node.advance(5)
        changed = {name for name in self.names if (await self.shop.pod(name)).spec != before[name]}
        said = {name for name in self.names if any(f"resizes {name} in place" in note for note in vpa)}
        assert changed == said, f"seed {self.seed}: {vpa}, changed {changed}"
        yield "taken back" if changed else "left alone"


def _restarts(pod: Pod) -> int:
    return sum(status.restart_count for status in pod.status.container_statuses)


def _waits_for(pod: Pod) -> str:
    pending = (condition for condition in pod.status.conditions if condition.type == "PodResizePending")
    return next(pending).message


def _wanted(wanted: PodRequest) -> Pod:
    """As it is when there is no size to go back to."""
    return wanted.pod if wanted.asked.undo and not can_undo(wanted.pod) else apply(wanted.asked, wanted.pod)


def _cpu(pod: Pod) -> Quantity:
    return pod.spec.containers[0].resources.requests["cpu"]


KINDS = {FITS, DEFERRED, REFUSED, PROTECTED, NOT_KNOWN, f"undo {FITS}", "taken back"}
ALL = {*KINDS, UNCHANGED, INFEASIBLE, f"undo {PROTECTED}", f"undo {UNCHANGED}", f"undo {NOT_KNOWN}", "left alone"}
