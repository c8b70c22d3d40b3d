"""`podfit resize`: plan, then do it, pod by pod."""

from typing import Annotated, Literal

from cyclopts import Parameter

from podfit.answers.carry_out import Deed, How, carry_out, disruption
from podfit.answers.plan import DEFERRED, Plan
from podfit.answers.plan import plan as planned
from podfit.answers.snapshot import Reader
from podfit.answers.target import POD, WORKLOADS, parse_target
from podfit.answers.wish import Wish, WishError
from podfit.cli import exits, render
from podfit.cli.asking import ContextName, Kubeconfig, Namespace, asked
from podfit.cli.output import Output, OutputOption
from podfit.cli.plan import show
from podfit.cli.wishing import ContainerName, Cpu, Filename, Memory, wish_of
from podfit.client.rest import Client
from podfit.net.system import SystemClock


def resize(
    target: Annotated[str, Parameter(help="pod/NAME, deployment/NAME, statefulset/NAME, ...")],
    /,
    *,
    cpu: Cpu = "",
    memory: Memory = "",
    container: ContainerName = "",
    filename: Filename = None,
    undo: Annotated[bool, Parameter(negative="", help="Back to what each pod was before podfit resized it.")] = False,
    wait: Annotated[bool, Parameter(negative="", help="Until each resize is complete, or --timeout.")] = False,
    timeout: Annotated[float, Parameter(help="Seconds to wait for one pod.")] = 60.0,
    dry_run: Annotated[bool, Parameter(negative="", help="Let the API server judge, and store nothing.")] = False,
    shrink: Annotated[
        Literal["plain", "guarded"], Parameter(help="guarded lowers memory step by step (podfit's nodes).")] = "plain",
    allow_disruption: Annotated[bool, Parameter(
        negative="", help="Also when it ends other pods (critical ones have room made for them).")] = False,
    namespace: Namespace = "",
    context: ContextName = "",
    kubeconfig: Kubeconfig = None,
    output: OutputOption = Output.TEXT,
) -> int:  # fmt: skip
    """Resize running pods in place: planned first, then pod by pod, ended by the first refusal.

    Nothing is begun when the plan has a refusal. Exit code 1 when not every pod was resized, or one still waits.
    """
    about = parse_target(target, POD, *WORKLOADS)
    if undo and (cpu or memory or container or filename):
        raise WishError("--undo knows all sizes; leave out --cpu, --memory, -c and -f")
    wish = Wish(undo=True) if undo else wish_of(cpu, memory, container, filename)
    how = How(wait=wait, dry_run=dry_run, timeout=timeout, guarded=shrink == "guarded", disrupt=allow_disruption)

    async def act(client: Client, where: str) -> tuple[Plan, list[Deed]]:
        snapshot = await Reader(client, where).read(about)
        plan = planned(snapshot, wish)
        if not all(each.good or each.verdict == DEFERRED for each in plan.pods) or disruption(plan, how):
            return plan, []
        deeds = []
        async for deed in carry_out(client, snapshot, wish, plan, how, SystemClock()):
            deeds.append(deed)
            if output.for_people:
                _progress(deed, len(deeds), len(plan.pods))
        return plan, deeds

    plan, deeds = asked(act, namespace=namespace, context=context, kubeconfig=kubeconfig)
    if not output.for_people:
        render.document({"plan": plan, "deeds": deeds}, output)
    elif not deeds:
        show(plan)
        render.line("nothing was changed" if plan.pods else "there is nothing to resize")
    if not deeds and (against := disruption(plan, how)):
        render.error(against, fix=("to do it all the same, add:  --allow-disruption",))
    done = len(deeds) == len(plan.pods) and all(each.good for each in deeds)
    return exits.DONE if done else exits.REFUSED


def _progress(deed: Deed, number: int, total: int) -> None:
    took = f" after {deed.seconds:.2f} s" if deed.seconds else ""
    why = f": {deed.text}" if deed.text else ""
    render.line(f"{number}/{total}  {deed.pod}  {deed.state}{took}{why}")
