"""More CPU for pods while they start, taken back in place when they are Ready.

A pod asks for it with the annotation `boost.example.com/factor: "3"`. All it knows is on the pod, so it may be
killed between any two steps:

    starting   ──▶ remember the sizes in an annotation ──▶ resize to factor times the CPU
    Ready      ──▶ resize to the remembered sizes      ──▶ annotation done

A node without room defers the boost; the pod then starts as it is, and going back takes the wish from the queue.
"""

import argparse
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import kr8s
from kr8s.objects import Pod

FACTOR, BEFORE, DONE = (f"boost.example.com/{each}" for each in ("factor", "before", "done"))
Sizes = dict[str, dict[str, dict[str, str]]]

log = logging.getLogger("startup-boost")


@dataclass(frozen=True)
class Step:
    """What is to be done next: a patch of the pod, or of its subresource `resize`."""

    what: str
    patch: Mapping[str, Any]
    subresource: str | None = None


def next_step(pod: Mapping[str, Any]) -> Step | None:
    """Pure, and decided from the pod alone."""
    notes = pod["metadata"].get("annotations", {})
    phase = pod.get("status", {}).get("phase")
    if FACTOR not in notes or DONE in notes or phase not in ("Pending", "Running") or not pod["spec"].get("nodeName"):
        return None
    now, ready = cpu_of(pod), is_ready(pod)
    if BEFORE not in notes:
        note = {DONE: "was Ready already"} if ready else {BEFORE: json.dumps(now)}
        return Step("remembered", {"metadata": {"annotations": note}})
    before: Sizes = json.loads(notes[BEFORE])
    wanted = before if ready else boosted(before, float(notes[FACTOR]))
    if now != wanted:
        containers = [resized(each, wanted[each["name"]]) for each in pod["spec"]["containers"]]
        return Step("taken back" if ready else "boosted", {"spec": {"containers": containers}}, "resize")
    return Step("done", {"metadata": {"annotations": {DONE: "taken back"}}}) if ready else None


def cpu_of(pod: Mapping[str, Any]) -> Sizes:
    """CPU requests and limits by container."""
    return {
        each["name"]: {
            side: {"cpu": amounts["cpu"]}
            for side, amounts in each.get("resources", {}).items()
            if side in ("requests", "limits") and "cpu" in amounts
        }
        for each in pod["spec"]["containers"]
    }


def resized(container: Mapping[str, Any], cpu: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """All amounts of the container, as a merge patch replaces the list of containers; only CPU is another."""
    resources = {side: amounts | cpu.get(side, {}) for side, amounts in container.get("resources", {}).items()}
    return {"name": container["name"], "resources": resources}


def boosted(sizes: Sizes, factor: float) -> Sizes:
    """Requests and limits alike, so the pod keeps its QoS class, which no resize may change."""
    return {
        name: {side: {"cpu": times(amounts["cpu"], factor)} for side, amounts in resources.items()}
        for name, resources in sizes.items()
    }


def times(cpu: str, factor: float) -> str:
    """As the API writes it, so that what is wanted can be compared with what is there."""
    milli = round((float(cpu[:-1]) if cpu.endswith("m") else 1000 * float(cpu)) * factor)
    return f"{milli}m" if milli % 1000 else str(milli // 1000)


def is_ready(pod: Mapping[str, Any]) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def reconcile(pod: Pod) -> None:
    """Take steps until there is none left. A pod that has gone, or a refusal, is told and left alone."""
    try:
        while step := next_step(pod.raw):
            pod.patch(step.patch, subresource=step.subresource)
            log.info("%s/%s %s", pod.namespace, pod.name, step.what)
            pod.refresh()
    except (kr8s.NotFoundError, kr8s.ServerError) as error:
        log.warning("%s/%s: %s", pod.namespace, pod.name, error)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubeconfig", help="else KUBECONFIG, ~/.kube/config or the service account")
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    log.setLevel(logging.INFO)
    api = kr8s.api(kubeconfig=parser.parse_args().kubeconfig)
    log.info("watching pods")
    for change, pod in api.watch("pods", namespace=kr8s.ALL):
        if change in ("ADDED", "MODIFIED"):
            reconcile(pod)


if __name__ == "__main__":
    main()
