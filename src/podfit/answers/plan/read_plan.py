"""Reads from a cluster what a plan is made of, for the verb that shows it and the one that carries it out."""

import msgspec

from podfit.answers.facts.commands import Commands
from podfit.answers.facts.snapshot import Reader, Snapshot
from podfit.answers.facts.target import Target
from podfit.answers.plan.plan import PodRequest, plan_requests, requests_of
from podfit.answers.plan.recommended_request import RecommendingVpa
from podfit.answers.plan.resize_request import ResizeRequest
from podfit.answers.plan.result import Plan
from podfit.answers.plan.template import WorkloadTemplate, read_workload, template_plan
from podfit.client.rest import Client


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A resize of `about`: the `request`, or None for what its VPA recommends."""

    about: Target
    request: ResizeRequest | None
    also_template: bool = False


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """A plan and what it was made from. `request` is for the template of `workload`, where that changes too."""

    snapshot: Snapshot
    requests: tuple[PodRequest, ...]
    plan: Plan
    request: ResizeRequest = ResizeRequest()
    workload: WorkloadTemplate | None = None


async def read_plan(client: Client, namespace: str, wanted: Wanted, commands: Commands) -> Planned:
    """Raises ApiError, and NoRecommendation."""
    snapshot = await Reader(client, namespace).read(wanted.about, usage=True)
    request = wanted.request or (await RecommendingVpa.find(client, wanted.about, namespace)).request(snapshot)
    workload = await read_workload(client, wanted.about, namespace) if wanted.also_template else None
    template = template_plan(workload, request, commands) if workload else None
    requests = requests_of(snapshot, request)
    made = plan_requests(snapshot, requests, template)
    return Planned(snapshot=snapshot, requests=requests, request=request, workload=workload, plan=made)
