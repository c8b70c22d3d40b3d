"""Predicts what podfit's updater does next for a VPA, by running its decision without writing."""

from collections.abc import Iterator, Mapping

import msgspec

from podfit.decide.autoscaling.actions import Action, ActionOutcome, Deed, Evict, Resize, Skip, Verdict
from podfit.decide.autoscaling.gates import Gates
from podfit.decide.autoscaling.update import UpdateSettings, View, run

SETTINGS = UpdateSettings(gates=Gates(cpu_startup_boost=True, in_place=True, per_vpa_config=True))
"""As in `podfit up`."""


class NextPass(msgspec.Struct, frozen=True):
    """One pass: `steps` in words, and by UID what becomes of each pod. How many pods it disturbs at once is bounded, so
    more may follow in the next.
    """

    steps: tuple[str, ...] = ()
    verdicts: Mapping[str, Verdict] = msgspec.field(default_factory=dict)

    def reason(self, uid: str) -> str:
        """What becomes of a pod, and why when it is left; empty for one that is not looked at."""
        verdict = self.verdicts.get(uid)
        if verdict is None:
            return ""
        done = {Deed.RESIZED: "the updater's next pass resizes it in place", Deed.EVICTED: "its next pass evicts it"}
        return done.get(verdict.deed) or f"the updater leaves it: {verdict.reason}"


def next_pass(view: View, settings: UpdateSettings = SETTINGS) -> NextPass:
    """As if the API refused nothing."""
    actions, told = run(view, settings), list[str]()
    try:
        action = next(actions)
        while True:
            told += _told(action)
            action = actions.send(ActionOutcome.DONE)
    except StopIteration as end:
        told += (f"leaves pods as they are. {said}" for said in end.value.conditions.values())
        return NextPass(tuple(told), {verdict.pod.metadata.uid: verdict for verdict in end.value.verdicts})


def _told(action: Action) -> Iterator[str]:
    name = action.pod.metadata.name
    match action:
        case Resize():
            amounts = ", ".join(
                _amount(resource) for resource in action.resources if isinstance(resource.get("value"), str)
            )
            yield f"resizes {name} in place: {amounts}"
        case Evict():
            yield f"evicts {name}, as far as disruption budgets allow"
        case Skip():
            yield f"leaves {name}: its node can never give as much"


def _amount(operation: dict[str, object]) -> str:
    """`/spec/containers/0/resources/requests/cpu` as `cpu request 500m`."""
    *_, kind, resource = str(operation["path"]).split("/")
    return f"{resource} {kind.removesuffix('s')} {operation['value']}"
