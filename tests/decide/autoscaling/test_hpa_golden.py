"""What upstream's own code answered: the replica calculator, the limits over time, and whole passes."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from podfit.api.autoscaling.v2.types import HorizontalPodAutoscaler, HorizontalPodAutoscalerBehavior, MetricSpec
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta import codec
from podfit.api.meta.selector_text import parse_labels
from podfit.core.selectors import Selector, SelectorError
from podfit.core.times import parse_time
from podfit.decide.autoscaling.horizontal.limits import Wish, limit, remember_change
from podfit.decide.autoscaling.horizontal.metrics import Failure, compute
from podfit.decide.autoscaling.horizontal.model import (
    Memory,
    Outcome,
    Reading,
    Recommendation,
    Sample,
    Samples,
    Settings,
    Tolerance,
    Unmeasured,
    Unread,
    View,
)
from podfit.decide.autoscaling.horizontal.passing import finish, group_problem, lost, propose, reads_metrics
from podfit.decide.autoscaling.horizontal.pods import sort_pods
from podfit.decide.autoscaling.horizontal.replicas import (
    Proposal,
    Target,
    by_average,
    by_share,
    by_utilization,
    by_value,
    total,
)
from podfit.decide.autoscaling.horizontal.samples import (
    ExternalValue,
    MetricValue,
    PodUsage,
    of_external,
    of_object,
    of_pods,
    of_resource,
)
from support.golden import Case, parametrize

NOW = parse_time("2000-01-01T00:00:00Z").timestamp()


def selected(pods: Any, selector: Selector) -> tuple[Pod, ...]:
    found = (codec.decode(msgspec.json.encode(pod), Pod) for pod in pods)
    return tuple(pod for pod in found if selector.matches(pod.metadata.labels))


# ---------------------------------------------------------------- the calculator

WANTED = {
    "resource_utilization": ("Resource", "Utilization"),
    "container_utilization": ("ContainerResource", "Utilization"),
    "resource_average": ("Resource", "AverageValue"),
    "container_average": ("ContainerResource", "AverageValue"),
    "pods_metric": ("Pods", "AverageValue"),
    "object_value": ("Object", "Value"),
    "object_average": ("Object", "AverageValue"),
    "external_value": ("External", "Value"),
    "external_average": ("External", "AverageValue"),
}


def settings_of(given: Mapping[str, Any]) -> Settings:
    return Settings(
        cpu_initialization=given["cpu_initialization_period"], initial_readiness=given["initial_readiness_delay"]
    )


def calculated(given: Mapping[str, Any], target: Target, samples: Samples) -> Proposal:
    function, wanted = given["function"], given["target"]
    resource = given.get("resource", "")
    if function.endswith("_utilization"):
        return by_utilization(target, samples, resource, wanted, given["container"])
    if function in ("resource_average", "container_average", "pods_metric"):
        return by_average(target, samples, wanted, resource)
    usage = given["object_usage"] if function.startswith("object") else total(given["external_values"])
    return (by_value if function.endswith("_value") else by_share)(target, usage, wanted)


def refusal(given: Mapping[str, Any], target: Target) -> str:
    """In the words of a pass, without what it puts around them."""
    kind, type_ = WANTED[given["function"]]
    amounts = {"Utilization": "averageUtilization", "Value": "value", "AverageValue": "averageValue"}
    wanted = {"type": type_, amounts[type_]: given["target"] if type_ == "Utilization" else f"{given['target']}m"}
    metric = {"name": "queue" if kind == "External" else "qps"}
    source = {"name": given.get("resource", ""), "container": given.get("container", ""), "target": wanted}
    if kind in ("Pods", "Object", "External"):
        source = {"metric": metric, "target": wanted, "describedObject": {"kind": "Ingress", "name": "front"}}
    spec = {"type": kind, kind[0].lower() + kind[1:]: source}
    found = compute(codec.convert(spec, MetricSpec), target, Unread(given["metrics_error"]), "shop")
    assert isinstance(found, Failure)
    prefix = f"failed to get {given.get('resource')} "
    return found.message.partition(": ")[2] if found.message.startswith(prefix) else found.message


@parametrize("hpa/replicas.json*", lambda case: "edge" not in case)
def test_hpa_replicas(case: Case) -> None:
    given, out = case["in"], case["out"]
    pods = selected(given.get("pods", ()), parse_labels(given["selector"]))
    samples = {
        name: Sample(sample["value"], NOW + sample["timestamp"], sample["window"])
        for name, sample in given.get("metrics", {}).items()
    }
    settings = settings_of(given)
    target = Target(
        pods=pods,
        current=given.get("current_replicas", 0),
        reported=given.get("status_replicas", 0),
        tolerance=Tolerance(given["tolerance"]["up"], given["tolerance"]["down"]),
        settings=settings,
        now=NOW,
    )
    if "groups" in out and "metrics_error" not in given:
        groups = sort_pods(pods, samples, given.get("resource", ""), settings, NOW)
        assert {
            "ready": groups.ready,
            "unready": sorted(groups.unready),
            "missing": sorted(groups.missing),
            "ignored": sorted(groups.ignored),
        } == out["groups"]
    if "metrics_error" in given:
        assert refusal(given, target) == out["error"]
        return
    if "error" in out:
        with pytest.raises(Unmeasured, match=f"^{re.escape(out['error'])}$"):
            calculated(given, target, samples)
        return
    found = calculated(given, target, samples)
    assert (found.replicas, found.usage) == (out["replicas"], out["usage"])
    assert found.utilization == out.get("utilization")


# ---------------------------------------------------------------- limits


@parametrize("hpa/behaviour.json*")
def test_hpa_behaviour(case: Case) -> None:
    given = case["in"]
    behavior = given.get("behavior_defaulted")
    rules = None if behavior is None else codec.convert(behavior, HorizontalPodAutoscalerBehavior)
    memory = Memory(recommendations=(Recommendation(0.0, given["initial_replicas"]),))
    for step in case["steps"]:
        wish = Wish(
            current=step["current"],
            desired=step["desired"],
            least=given["min_replicas"],
            most=given["max_replicas"],
            behavior=rules,
            window=given["downscale_stabilization"],
            now=float(step["t"]),
        )
        limited = limit(wish, memory)
        memory = remember_change(rules, limited.memory, step["current"], limited.replicas, float(step["t"]))
        assert limited.replicas == step["out"]
        assert {"status": "True", **msgspec.structs.asdict(limited.held)} == step["AbleToScale"]
        bounded = "False" if limited.limited.reason == "DesiredWithinRange" else "True"
        assert {"status": bounded, **msgspec.structs.asdict(limited.limited)} == step["ScalingLimited"]


# ---------------------------------------------------------------- whole passes


def read(metric: Any, told: Mapping[str, Any], matched: Any) -> Reading:
    """As the metrics APIs of a tick answer."""
    match metric["type"]:
        case "Resource" | "ContainerResource":
            source = metric.get("resource") or metric["containerResource"]
            if "pod_metrics_error" in told:
                return Unread(f"unable to fetch metrics from resource metrics API: {told['pod_metrics_error']}")
            usage = codec.convert(told["pod_metrics"] or (), tuple[PodUsage, ...])
            return of_resource(usage, source["name"], source.get("container", ""))
        case "External":
            name = metric["external"]["metric"]["name"]
            if name in told["external_errors"]:
                return Unread(f"unable to fetch metrics from external metrics API: {told['external_errors'][name]}")
            values = told["external"].get(name) or ()
            return of_external(codec.convert(values, tuple[ExternalValue, ...]))
        case kind:
            name = metric[kind.lower()]["metric"]["name"]
            if name in told["custom_errors"]:
                return Unread(f"unable to fetch metrics from custom metrics API: {told['custom_errors'][name]}")
            if kind == "Object" and name not in told["custom"]:
                described = metric["object"]["describedObject"]
                missing = f"the server could not find the metric {name} for {described['kind']} {described['name']}"
                return Unread(f"unable to fetch metrics from custom metrics API: {missing}")
            values = codec.convert(told["custom"].get(name) or (), tuple[MetricValue, ...])
            return of_pods(values) if kind == "Pods" else of_object(values)


def passed(
    given: Mapping[str, Any], tick: Mapping[str, Any], hpa: HorizontalPodAutoscaler, memory: Memory
) -> tuple[Outcome, int]:
    """And how often the scale was to be written."""
    now, scale, ref = NOW + tick["t"], tick["scale"], hpa.spec.scale_target_ref
    if problem := group_problem(ref.api_version):
        told = f"invalid API version in scale target reference: {problem}"
        return lost(hpa, memory, problem, told, now, in_spec=True), 0
    if f"{ref.kind}.apps" not in given["known_kinds"]:
        problem = f"no matches for apps/, Resource={ref.kind}"
        told = f"unable to determine resource for scale target reference: {problem}"
        return lost(hpa, memory, problem, told, now, in_spec=False), 0
    if problem := str(tick.get("scale_get_error", "")):
        told = f"failed to query scale subresource for {ref.kind}/shop/web: {problem}"
        return lost(hpa, memory, problem, told, now, in_spec=False), 0
    try:
        selector, problem = parse_labels(scale["selector"]), ""
    except SelectorError as error:
        selector, problem = Selector(), str(error)
    pods = selected(tick["pods"], selector)
    others = given["other_hpas_with_selector_app_web"]
    shared = any(pod.metadata.labels.get("app") == "web" for pod in pods)
    view = View(
        autoscaler=hpa,
        replicas=scale["spec_replicas"],
        reported=scale["status_replicas"],
        selector=scale["selector"],
        selector_error=problem,
        pods=pods,
        rivals=["shop/web", *(f"shop/{name}" for name in others)] if shared and others else (),
        memory=memory,
        settings=replace(
            settings_of(given),
            tolerance=given["tolerance"],
            downscale_stabilization=given["downscale_stabilization"],
            scale_to_zero=given["gates"]["HPAScaleToZero"],
        ),
    )
    specs = codec.to_dict(hpa.spec.metrics)
    readings = [read(spec, tick["metrics"], pods) for spec in specs] if reads_metrics(view) else []
    plan = propose(view, readings, now)
    failure = tick.get("scale_update_error", "") if plan.scale_to is not None else ""
    return finish(plan, now, failure), int(plan.scale_to is not None)


def observed(outcome: Outcome) -> Iterator[str]:
    for seen in outcome.observed:
        labels = f'action="{seen.action}",error="{seen.error}"'
        if seen.type:
            yield f'metric_computation_total{{{labels},metric_type="{seen.type}"}}'
            continue
        if outcome.desired is not None:
            yield f'desired_replicas{{namespace="shop",hpa_name="web"}} {outcome.desired}'
        yield f"reconciliations_total{{{labels}}}"


@parametrize("hpa/reconcile.json*", lambda case: "edge" not in case)
def test_hpa_reconcile(case: Case) -> None:
    given = case["in"]
    hpa = codec.decode(msgspec.json.encode(given["hpa"]), HorizontalPodAutoscaler)
    memory = Memory()
    for tick in case["ticks"]:
        outcome, calls = passed(given, tick, hpa, memory)
        out = tick["out"]
        assert msgspec.json.decode(codec.encode(outcome.status)) == out["status"]
        assert [msgspec.structs.asdict(event) for event in outcome.events] == out["events"]
        assert (calls, outcome.error) == (out["scale_update_calls"], out.get("error", ""))
        assert list(observed(outcome)) == out["observed"]
        assert int(outcome.status != hpa.status) == out["status_written"]
        scaled = calls and "scale_update_error" not in tick
        assert (outcome.desired if scaled else None) == out["scale_set_to"]
        hpa, memory = replace(hpa, status=outcome.status), outcome.memory
