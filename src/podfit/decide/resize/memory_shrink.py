"""Whether a memory limit may be lowered now: usage against the new limit.

Lowering a limit below usage is refused by the kernel on cgroup v1 and kills on v2, so usage is compared first. That a
process may grow between the look and the write cannot be helped here.
"""

from collections.abc import Mapping

import msgspec

from podfit.api.core.v1.pods.types import Pod

CANNOT_LOWER = "cannot decrease memory limits"
"""How the condition of a resize begins that waits for memory to be given back, as in Kubernetes."""


class Memory(msgspec.Struct, frozen=True):
    """Bytes, for the pod and by container: limits about to be lowered, or usage. None = not asked, or unknown."""

    pod: int | None = None
    containers: Mapping[str, int | None] = msgspec.field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.pod is not None or bool(self.containers)


def objection(limits: Memory, usage: Memory) -> str:
    """Why these limits must not be set; empty when they may (R-143 to R-145). Each with its own usage."""
    problems = []
    if limits.pod is not None:
        problems.append(_compare("pod", "pod", limits.pod, usage.pod))
    for name, limit in limits.containers.items():
        if limit is not None:
            who = f'container "{name}"'
            problems.append(_compare(who, who, limit, usage.containers.get(name)))
    return refusal([problem for problem in problems if problem])


def _compare(who: str, missing: str, limit: int, usage: int | None) -> str:
    if usage is None:
        return f"missing {missing} memory usage"
    if usage >= limit:
        return f"attempting to set {who} memory limit ({limit}) below current usage ({usage})"
    return ""


def unreadable(pod: Pod) -> str:
    """The text when usage could not be read at all."""
    meta = pod.metadata
    return refusal([f'unable to read memory usage for pod "{meta.name}_{meta.namespace}({meta.uid})"'])


def refusal(problems: list[str]) -> str:
    if not problems:
        return ""
    listed = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
    return f"{CANNOT_LOWER}: {listed}"
