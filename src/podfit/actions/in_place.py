"""For operators: a workload is given new sizes without a rollout, and what a manifest would do is told, in Python.

    client = find(os.environ).client()                      # podfit.client.kubeconfig
    await rollouts_of(client, manifests, "shop")            # which pods are resized, and which replaced
    await resize_workload(client, "statefulset/db", "shop", cpu="2", memory="8Gi")

They do what `podfit plan -f` and `podfit resize --also-template` do, on any cluster; raise what those tell as errors.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from podfit.actions.change_template import retemplate
from podfit.actions.resize_pods import Options, Outcome, carry_out, objection
from podfit.answers.facts.commands import HERE
from podfit.answers.facts.target import WORKLOADS, parse_target
from podfit.answers.plan.amounts import OptionError, parse_amount
from podfit.answers.plan.read_plan import Wanted, read_plan
from podfit.answers.plan.resize_request import ResizeRequest
from podfit.answers.plan.result import Plan
from podfit.answers.plan.rollout import RolloutPlan, plan_rollouts
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.net.system import SystemClock


class Resized(msgspec.Struct, frozen=True, kw_only=True):
    """What was planned, and what became of each pod and of the template. `refused` says why nothing was begun."""

    plan: Plan
    pods: tuple[Outcome, ...] = ()
    template: Outcome | None = None
    refused: str = ""

    @property
    def good(self) -> bool:
        """Whether every pod and the template have the sizes."""
        template = self.template is not None and self.template.good
        return not self.refused and template and all(pod.good for pod in self.pods)


async def rollouts_of(
    client: Client, manifests: Sequence[Mapping[str, Any]], namespace: str, *, clock: Clock | None = None
) -> list[RolloutPlan]:
    """What applying them would do to the pods of the workloads among them; those that would stay are left out.

    By dry runs, which need the rights of who applies. Raises ConnectionError.
    """
    return await plan_rollouts(client, manifests, namespace, clock or SystemClock())


async def resize_workload(
    client: Client,
    workload: str,
    namespace: str,
    *,
    cpu: str = "",
    memory: str = "",
    container: str = "",
    disrupt: bool = False,
    timeout: float = 60.0,
    clock: Clock | None = None,
) -> Resized:
    """Resize the pods of `statefulset/NAME` and the like in place, wait for their nodes, then its template, without a
    rollout. Amounts as `podfit resize` takes them; `timeout` in seconds for each pod. Nothing is begun when one pod
    would be refused, or a budget protects it from the restart it needs, unless `disrupt`.

    Raises OptionError, RequestError or TargetError for what cannot be meant, ApiError, ConnectionError.
    """
    amounts = {name: parse_amount(f"--{name}", text) for name, text in (("cpu", cpu), ("memory", memory)) if text}
    if not amounts:
        raise OptionError("one of cpu and memory is required")
    wanted = Wanted(
        about=parse_target(workload, *WORKLOADS), request=ResizeRequest(amounts, container), also_template=True
    )
    options = Options(wait=True, timeout=timeout, disrupt=disrupt)
    planned = await read_plan(client, namespace, wanted, HERE)
    against, _ = objection(planned.plan, options)
    bad = next((pod for pod in planned.plan.pods if not pod.sendable), None)
    if against or bad is not None:
        return Resized(plan=planned.plan, refused=against or (f"{bad.pod}: {bad.text}" if bad is not None else ""))
    pods = tuple([told async for told in carry_out(client, planned, options, clock or SystemClock())])
    if not all(pod.good for pod in pods) or planned.workload is None or planned.plan.template is None:
        return Resized(plan=planned.plan, pods=pods)
    template = await retemplate(client, planned.workload, planned.request, planned.plan.template, namespace, options)
    return Resized(plan=planned.plan, pods=pods, template=template)
