"""`podfit resize`: plan, then do it, pod by pod."""

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from cyclopts import Parameter

from podfit.answers.carry_out import Deed, How, carry_out, objection
from podfit.answers.plan import DEFERRED, Plan
from podfit.answers.plan import plan as planned
from podfit.answers.retemplate import rehearse, retemplate
from podfit.answers.snapshot import Reader
from podfit.answers.target import POD, WORKLOADS, parse_target
from podfit.answers.template import read_workload, template_plan
from podfit.answers.wish import Wish, WishError
from podfit.cli import exits, render
from podfit.cli.asking import ContextName, Kubeconfig, Namespace, asked
from podfit.cli.output import Output, OutputOption
from podfit.cli.plan import show
from podfit.cli.wishing import AlsoTemplate, ContainerName, Cpu, Filename, Memory, check_template, wish_of
from podfit.client.rest import Client
from podfit.net.system import SystemClock


class Done(msgspec.Struct, frozen=True):
    """`against` is what spoke against beginning, and what helps."""

    plan: Plan
    deeds: Sequence[Deed] = ()
    template: Deed | None = None
    against: tuple[str, str] = ("", "")

    @property
    def good(self) -> bool:
        every = len(self.deeds) == len(self.plan.pods) and all(each.good for each in self.deeds)
        return every and not self.against[0] and (self.template is None or self.template.good)


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
    also_template: AlsoTemplate = False,
    allow_disruption: Annotated[bool, Parameter(
        negative="", help="Also when it ends other pods (a critical one has room made), or begins a rollout.")] = False,
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
    check_template(about, also_template=also_template)
    wish = Wish(undo=True) if undo else wish_of(cpu, memory, container, filename)
    how = How(wait=wait, dry_run=dry_run, timeout=timeout, guarded=shrink == "guarded", disrupt=allow_disruption)

    async def act(client: Client, where: str) -> Done:
        snapshot = await Reader(client, where).read(about)
        workload = await read_workload(client, about, where) if also_template else None
        plan = planned(snapshot, wish, template_plan(workload, wish) if workload else None)
        against = objection(plan, how)
        if against[0] or not all(each.good or each.verdict == DEFERRED for each in plan.pods):
            return Done(plan, against=against)
        changes = plan.template is not None and plan.template.changes
        if workload and changes and (text := await rehearse(client, workload, wish, where)):
            return Done(plan, against=(f"the template of {about} would be refused: {text}", ""))
        deeds = []
        async for deed in carry_out(client, snapshot, wish, plan, how, SystemClock()):
            deeds.append(deed)
            if output.for_people:
                _progress(deed, f"{len(deeds)}/{len(plan.pods)}")
        if not workload or not plan.template:
            return Done(plan, deeds)
        if any(each.ends for each in deeds):
            return Done(plan, deeds, Deed(pod=str(about), state="refused", text="not every pod was resized"))
        template = await retemplate(client, workload, wish, plan.template, where, how)
        if output.for_people:
            _progress(template, "template")
        return Done(plan, deeds, template)

    done = asked(act, namespace=namespace, context=context, kubeconfig=kubeconfig)
    if not output.for_people:
        template = {"template": done.template} if done.template else {}
        render.document({"plan": done.plan, "deeds": done.deeds, **template}, output)
    elif not done.deeds:
        show(done.plan, wide=output is Output.WIDE)
        render.line("nothing was changed" if done.plan.pods else "there is nothing to resize")
    if done.against[0]:
        render.error(done.against[0], fix=filter(None, (done.against[1],)))
    return exits.DONE if done.good else exits.REFUSED


def _progress(deed: Deed, which: str) -> None:
    took = f" after {deed.seconds:.2f} s" if deed.seconds else ""
    why = f": {deed.text}" if deed.text else ""
    render.line(f"{which}  {deed.pod}  {deed.state}{took}{why}")
