"""The options that say what a resize is to make of a pod."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from cyclopts import Parameter

from podfit.actions.canary import MOST, CanaryOptions
from podfit.answers.facts.target import Target
from podfit.answers.plan.amounts import OptionError, RequestError, parse_amount
from podfit.answers.plan.resize_request import ResizeRequest, from_template
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta import codec
from podfit.cli.questions.manifests import Manifest, display_name, documents_of
from podfit.core.durations import parse_duration
from podfit.decide.workload.canary import triggers

LONGEST_WATCH = 86400.0
_AMOUNT = "{} (request; a limit keeps its proportion), {} (request:limit) or {} (limit); {} of what it has."
Cpu: TypeAlias = Annotated[
    str, Parameter(allow_leading_hyphen=True, help=_AMOUNT.format("500m", "500m:1", ":1", "+20%, -100m"))
]
Memory: TypeAlias = Annotated[
    str, Parameter(allow_leading_hyphen=True, help=_AMOUNT.format("768Mi", "768Mi:1Gi", ":1Gi", "+20%, -64Mi"))
]
ContainerName: TypeAlias = Annotated[
    str, Parameter(name=["--container", "-c"], help="Which one, when there are several.")
]
Filename: TypeAlias = Manifest

AlsoTemplate: TypeAlias = Annotated[
    bool, Parameter(negative="", help="The workload's template as well, so that the next rollout keeps the sizes.")
]


def check_template(target: Target, *, also_template: bool) -> None:
    if also_template and not target.is_workload:
        raise OptionError(f"--also-template needs a workload, such as deployment/NAME; {target} has no template")


Undo: TypeAlias = Annotated[bool, Parameter(negative="", help="Back to what each pod had before podfit resized it.")]


FromVpa: TypeAlias = Annotated[
    bool, Parameter(name=["--from-vpa", "--to-recommendation"], negative="", help="What the workload's VPA recommends.")
]


Canary: TypeAlias = Annotated[int, Parameter(help="So many pods first; the others when nothing has happened to them.")]
Watch: TypeAlias = Annotated[str, Parameter(help="How long the canary is watched, such as 2m; 2m without it.")]
RollbackOn: TypeAlias = Annotated[
    str,
    Parameter(
        help="What makes the canary go back: restart, oom, unready, throttled>10%, separated by commas; "
        "restart,oom,unready without it."
    ),
]
WATCH, ROLLBACK_ON = "2m", "restart,oom,unready"


def canary_options(number: int, watch: str, rollback_on: str, *, workload: bool) -> CanaryOptions | None:
    """None without a canary. Raises OptionError."""
    if not number:
        if watch or rollback_on:
            raise OptionError(
                f"--{'watch' if watch else 'rollback-on'} needs --canary, the number of pods to begin with"
            )
        return None
    if not workload:
        raise OptionError("--canary needs one workload, such as deployment/NAME")
    if not 0 < number <= MOST:
        raise OptionError(f"invalid value {number} for --canary: from 1 to {MOST} pods")
    try:
        wanted = triggers(rollback_on or ROLLBACK_ON)
    except ValueError as error:
        raise OptionError(f'invalid value "{rollback_on}" for --rollback-on: {error}') from None
    try:
        seconds = parse_duration(watch or WATCH)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= LONGEST_WATCH:
        raise OptionError(f'invalid value "{watch}" for --watch: not a duration from 1s to 24h, such as 2m')
    return CanaryOptions(number=number, seconds=seconds, triggers=wanted)


def given_request(
    cpu: str, memory: str, container: str, filename: Path | None, target: Target, *, undo: bool, from_vpa: bool
) -> ResizeRequest | None:
    """None with --from-vpa, which says every size itself. Raises OptionError."""
    if not from_vpa:
        return request_of(cpu, memory, container, filename, target, undo=undo)
    if not target.is_workload:
        raise OptionError(f"--from-vpa needs a workload, such as deployment/NAME, which its VPA names; not {target}")
    if undo or cpu or memory or container or filename:
        other = "--undo" if undo else _first(cpu, memory, container, filename)
        raise OptionError(f"--from-vpa cannot be combined with {other}")
    return None


def request_of_several(
    cpu: str, memory: str, container: str, filename: Path | None, *, undo: bool, from_vpa: bool, also_template: bool
) -> ResizeRequest | None:
    """The one for all that are selected; None with --from-vpa. Raises OptionError."""
    if also_template or filename:
        option = "--also-template" if also_template else "-f"
        raise OptionError(f"{option} is about one target; -f alone is for all that a manifest names")
    if from_vpa:
        if undo or cpu or memory or container:
            other = "--undo" if undo else _first(cpu, memory, container, None)
            raise OptionError(f"--from-vpa cannot be combined with {other}")
        return None
    return _typed(cpu, memory, container, undo=undo)


def request_of(
    cpu: str, memory: str, container: str, filename: Path | None, target: Target, *, undo: bool
) -> ResizeRequest:
    if filename is not None and not undo:
        if cpu or memory or container:
            raise OptionError(f"-f cannot be combined with {_first(cpu, memory, container, None)}")
        return from_template(_template(filename, target))
    if undo and filename is not None:
        raise OptionError("--undo cannot be combined with --filename")
    return _typed(cpu, memory, container, undo=undo)


def _typed(cpu: str, memory: str, container: str, *, undo: bool) -> ResizeRequest:
    if undo:
        if cpu or memory or container:
            raise OptionError(f"--undo cannot be combined with {_first(cpu, memory, container, None)}")
        return ResizeRequest(undo=True)
    amounts = {name: parse_amount(f"--{name}", text) for name, text in (("cpu", cpu), ("memory", memory)) if text}
    if not amounts:
        raise OptionError("one of --cpu, --memory, -f, --from-vpa and --undo is required")
    return ResizeRequest(amounts, container)


def _first(cpu: str, memory: str, container: str, filename: Path | None) -> str:
    """The first of the options that were given."""
    given = (("--cpu", cpu), ("--memory", memory), ("--container", container), ("--filename", filename))
    return next(name for name, value in given if value)


def _template(path: Path, target: Target) -> Pod:
    """The pod of a manifest, or the pod template of a workload's."""
    documents = documents_of(path)
    if len(documents) > 1:
        raise RequestError(
            f"{display_name(path)}: {len(documents)} documents for one target; "
            "plan all of them by leaving out the target"
        )
    return _sole(documents, display_name(path))


def _sole(documents: Sequence[Any], name: str) -> Pod:
    document = documents[0]
    spec = document.get("spec") if isinstance(document, dict) else None
    made = (
        document
        if isinstance(spec, dict) and document.get("kind") == "Pod"
        else (spec.get("template") if isinstance(spec, dict) else None)
    )
    if not isinstance(made, dict) or not isinstance(made.get("spec"), dict):
        raise RequestError(f"{name}: not the manifest of a pod or a workload")
    try:
        return codec.convert(made, Pod)
    except (ValueError, TypeError, RecursionError) as error:
        raise RequestError(f"{name}: {error}") from error
