"""Recommends sizes for running workloads with the VPA's estimator, from any source of usage, and says what they save.

    a history from Prometheus ─┐
    the VPA of the workload ───┤
    its checkpoints ───────────┼──▶ percentile ─▶ margin ─▶ minimum ─▶ size, beside the request
    usage, watched for a while ┘

Loads NumPy. Nothing is written.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

import msgspec
from msgspec.structs import replace

from podfit.answers.autoscaling.estimate_steps import Explained, estimate_steps, shown_step
from podfit.answers.autoscaling.recommended_facts import Facts
from podfit.answers.autoscaling.vpas import EstimateStep
from podfit.answers.facts.readable import readable_amount
from podfit.answers.facts.workloads import WorkloadName
from podfit.api.autoscaling_k8s.v1 import RecommendedContainerResources, VerticalPodAutoscaler
from podfit.api.core.v1.pods.types import Pod
from podfit.core.quantity import ZERO, Format, Quantity
from podfit.core.resources import CPU, MEMORY
from podfit.core.selectors import from_map
from podfit.decide.autoscaling.cluster_state import ClusterState
from podfit.decide.autoscaling.container_view import every_container
from podfit.decide.autoscaling.estimate import BOUNDS, Estimates, EstimationStep, steps
from podfit.decide.autoscaling.flags import EstimatorFlags, RecommenderFlags
from podfit.decide.autoscaling.policies import recommended
from podfit.decide.autoscaling.status import provided
from podfit.decide.autoscaling.targets import by_age, target_of
from podfit.decide.autoscaling.tracked import PodKey, VpaKey
from podfit.vpa.history.gathered import Gathered
from podfit.vpa.history.replay import replay

LABEL = "workload"
MEBI, NANO_IN_MILLI = 2**20, 1_000_000
FROM_VPA, FROM_CHECKPOINT, FROM_PROMETHEUS, FROM_OWN, FROM_USAGE = "VPA", "checkpoint", "Prometheus", "history", "usage"
ESTIMATED = ("percentile", "margin", "estimate")
"""Steps that are told whether or not they moved the number."""


class Size(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One resource of one container. `saves` in requests, for all pods of the workload; less than nothing is what it
    needs more. `saves_monthly` is that in money. `confidence` is 1 after a day of samples each minute; None where
    nobody says.
    """

    container: str
    resource: str
    request: str = ""
    recommended: str
    lower: str = ""
    upper: str = ""
    source: str
    samples: int = 0
    confidence: float | None = None
    saves: str = ""
    saves_monthly: str = ""
    reason: str = ""


class Sizes(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    workload: str
    namespace: str
    pods: int
    sizes: tuple[Size, ...]


class Recommendations(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`saves_monthly`, in `currency`, is known with a table of prices. `unknown` are containers of which nothing is
    known, as namespace, workload and name.
    """

    workloads: tuple[Sizes, ...]
    saves: Mapping[str, str]
    saves_monthly: str = ""
    currency: str = ""
    unknown: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class _Known(msgspec.Struct, frozen=True):
    """What is known of a container: amounts by resource and bound, steps of the target, and how sure that is."""

    amounts: Mapping[str, Mapping[str, Quantity]]
    steps: Mapping[str, tuple[EstimationStep, ...]]
    samples: int
    confidence: float


class _Own(msgspec.Struct, frozen=True):
    """What a VPA says of a container, and how it came to that."""

    sizes: RecommendedContainerResources
    why: Explained


def recommend(facts: Facts, flags: EstimatorFlags) -> Recommendations:
    vpas = _by_workload(facts.vpas)
    known, sources = _estimated(facts, flags, vpas)
    why = {workload: _explained(vpa, facts) for workload, vpa in vpas.items() if workload in facts.pods}
    found, unknown, totals = [], list[str](), {CPU: 0, MEMORY: 0}
    for workload, pods in facts.pods.items():
        vpa, sizes = vpas.get(workload), list[Size]()
        for container in dict.fromkeys(scaled.container.name for pod in pods for scaled in every_container(pod)):
            own = _own(vpa, container, why.get(workload, {}))
            of = known.get((workload, container))
            more = list(_sizes(container, pods, own, of, sources.get(workload, FROM_USAGE), totals))
            sizes += more
            if not more:
                unknown.append(f"{workload.namespace} {workload} {container}")
        if sizes:
            row = Sizes(workload=str(workload), namespace=workload.namespace, pods=len(pods), sizes=tuple(sizes))
            found.append(row)
    return Recommendations(
        workloads=tuple(found),
        saves={name: str(_quantity(name, amount)) for name, amount in totals.items()},
        unknown=tuple(unknown),
        notes=tuple(_notes(facts)),
    )


def _estimated(
    facts: Facts, flags: EstimatorFlags, vpas: Mapping[WorkloadName, VerticalPodAutoscaler]
) -> tuple[dict[tuple[WorkloadName, str], _Known], dict[WorkloadName, str]]:
    """What samples and checkpoints tell of containers, and where it is from."""
    state, sources = ClusterState(RecommenderFlags(estimator=flags)), dict[WorkloadName, str]()
    keys = {workload: VpaKey(workload.namespace, str(workload)) for workload in facts.pods}
    for workload, pods in facts.pods.items():
        labels = {LABEL: str(workload)}
        state.set_vpa(keys[workload], from_map(labels), None)
        for pod in pods:
            names = [scaled.container.name for scaled in every_container(pod)]
            state.set_pod(_key(pod), labels, names, facts.now)
    if facts.history is not None:
        replay(state, facts.history)
        sources = dict.fromkeys(facts.pods, FROM_OWN if isinstance(facts.history, Gathered) else FROM_PROMETHEUS)
    else:
        by_name = {(vpa.metadata.namespace, vpa.metadata.name): workload for workload, vpa in vpas.items()}
        for checkpoint in facts.checkpoints:
            spec = checkpoint.spec
            owner = by_name.get((checkpoint.metadata.namespace, spec.vpa_object_name))
            if owner is not None and owner in keys:
                named = replace(spec, vpa_object_name=keys[owner].name)
                with suppress(ValueError):  # of a slice of its pods, or of another form: it says nothing of all of them
                    state.restore(replace(checkpoint, spec=named), facts.now)
                    sources[owner] = FROM_CHECKPOINT
    _add_readings(state, facts, set(sources))
    members = state.members(keys.values())
    of = {key: workload for workload, key in keys.items()}
    known = {}
    for part, estimates in state.estimates(members):
        for row, (key, container) in enumerate(members.names[part]):
            known[of[key], container] = _known(estimates, row)
    return known, sources


def _add_readings(state: ClusterState, facts: Facts, known: set[WorkloadName]) -> None:
    """Adds readings of workloads that nothing better is known of."""
    wanted = {_key(pod) for workload, pods in facts.pods.items() if workload not in known for pod in pods}
    for reading in facts.readings:
        for (namespace, name, container), used in reading.usage.used.items():
            key, cpu = PodKey(namespace, name), None if used.cpu is None else -(-used.cpu // NANO_IN_MILLI)
            if key in wanted:
                state.add_sample(key, container, reading.time, cpu=cpu, memory=used.memory)


def _known(estimates: Estimates, row: int) -> _Known:
    amounts: dict[str, dict[str, Quantity]] = {}
    told: dict[str, tuple[EstimationStep, ...]] = {}
    for name, chains in ((CPU, estimates.cpu), (MEMORY, estimates.memory)):
        if chains["target"].percentile[row]:
            amounts[name] = {bound: _quantity(name, int(chains[bound].floor[row])) for bound in BOUNDS}
            told[name] = tuple(steps(estimates, "cpu" if name == CPU else "memory", "target", row))
    return _Known(amounts, told, int(estimates.count[row]), float(estimates.confidence_cpu[row]))


def _sizes(
    container: str, pods: tuple[Pod, ...], own: _Own | None, known: _Known | None, source: str, totals: dict[str, int]
) -> Iterator[Size]:
    """The VPA's own number goes before what its checkpoint gives."""
    for name in (CPU, MEMORY):
        amounts = dict(known.amounts.get(name, {})) if known is not None else {}
        steps, from_vpa = _steps(container, name, known), False
        if own is not None and name in own.sizes.target and source not in (FROM_OWN, FROM_PROMETHEUS):
            said = own.sizes
            bounds = {"target": said.target, "lower": said.lower_bound, "upper": said.upper_bound}
            amounts = {bound: listed[name] for bound, listed in bounds.items() if name in listed}
            steps, from_vpa = own.why.get((container, name), ()), True
        if "target" not in amounts:
            continue
        requests = [_request(pod, container, name) for pod in pods]
        saved = sum(_number(name, request) - _number(name, amounts["target"]) for request in requests)
        totals[name] += saved
        reason = _reason(steps)
        yield Size(
            container=container,
            resource=name,
            request=", ".join(dict.fromkeys(str(request) for request in requests if request is not None)),
            recommended=str(amounts["target"]),
            lower=str(amounts.get("lower", "")),
            upper=str(amounts.get("upper", "")),
            source=FROM_VPA if from_vpa else source,
            samples=known.samples if known is not None else 0,
            confidence=round(known.confidence, 3) if known is not None and known.samples else None,
            saves=str(_quantity(name, saved)),
            reason=reason or "as its VPA says",
        )


def _own(vpa: VerticalPodAutoscaler | None, container: str, why: Explained) -> _Own | None:
    sizes = recommended(provided(vpa), container) if vpa is not None else None
    return None if sizes is None else _Own(sizes, why)


def _explained(vpa: VerticalPodAutoscaler, facts: Facts) -> Explained:
    meta = vpa.metadata
    own = (
        checkpoint
        for checkpoint in facts.checkpoints
        if (checkpoint.metadata.namespace, checkpoint.spec.vpa_object_name) == (meta.namespace, meta.name)
    )
    return estimate_steps(tuple(own), vpa, facts.now)


def _steps(container: str, resource: str, known: _Known | None) -> tuple[EstimateStep, ...]:
    return tuple(shown_step(container, resource, step) for step in known.steps.get(resource, ())) if known else ()


def _reason(steps: Sequence[EstimateStep]) -> str:
    """The steps that moved the number; where a bound did, what it would be without."""
    told, before = list[str](), ""
    for step in steps:
        if step.step in ESTIMATED:
            told.append(step.because)
        elif step.value != before:
            told.append(step.because + (f" ({readable_amount(step.resource, before)} without it)" if before else ""))
        before = step.value
    return "; ".join(told)


def _notes(facts: Facts) -> Iterator[str]:
    if facts.readings:
        seconds = facts.readings[-1].time - facts.readings[0].time
        yield (f"usage was watched for {seconds:.0f} s: a size from so little is a guess; a VPA of mode Off learns on")
        yield from facts.readings[-1].usage.notes
    yield from facts.notes
    yield from (f"not read: {line}" for line in facts.unread)


def _by_workload(vpas: tuple[VerticalPodAutoscaler, ...]) -> dict[WorkloadName, VerticalPodAutoscaler]:
    """Of several the one that counts. Workloads are the topmost controllers of pods, as a VPA has to name them."""
    found: dict[WorkloadName, VerticalPodAutoscaler] = {}
    for vpa in sorted(vpas, key=by_age):
        if (target := target_of(vpa)) is not None:
            found.setdefault(WorkloadName(*target), vpa)
    return found


def _key(pod: Pod) -> PodKey:
    return PodKey(pod.metadata.namespace, pod.metadata.name)


def _request(pod: Pod, container: str, resource: str) -> Quantity | None:
    declared = (scaled.container for scaled in every_container(pod) if scaled.container.name == container)
    return next((container.resources.requests.get(resource) for container in declared), None)


def _number(resource: str, amount: Quantity | None) -> int:
    found = amount or ZERO
    return found.milli() if resource == CPU else found.value()


def _quantity(resource: str, number: int) -> Quantity:
    """Memory to the next MiB."""
    if resource == CPU:
        return Quantity.of_milli(number)
    return Quantity.of(-(-number // MEBI) * MEBI, Format.BINARY_SI)
