"""The options that say what a resize is to make of a pod."""

from pathlib import Path
from typing import Annotated, TypeAlias

import yaml
from cyclopts import Parameter

from podfit.answers.target import Target
from podfit.answers.wish import Wish, WishError, from_template, parse_amount
from podfit.api import codec
from podfit.api.core.pods import Pod

_AMOUNT = "{} (request; a limit keeps its proportion), {} (request:limit) or {} (limit)."
Cpu: TypeAlias = Annotated[str, Parameter(help=_AMOUNT.format("500m", "500m:1", ":1"))]
Memory: TypeAlias = Annotated[str, Parameter(help=_AMOUNT.format("768Mi", "768Mi:1Gi", ":1Gi"))]
ContainerName: TypeAlias = Annotated[
    str, Parameter(name=["--container", "-c"], help="Which one, when there are several.")]
Filename: TypeAlias = Annotated[Path | None, Parameter(name=["--filename", "-f"], help="Sizes of this manifest.")]

AlsoTemplate: TypeAlias = Annotated[bool, Parameter(
    negative="", help="The workload's template as well, so that the next rollout keeps the sizes.")]  # fmt: skip


def check_template(target: Target, *, also_template: bool) -> None:
    if also_template and not target.is_workload:
        raise WishError(f"{target} has no template; name the workload that makes it, such as deployment/NAME")


def wish_of(cpu: str, memory: str, container: str, filename: Path | None) -> Wish:
    if filename is not None:
        if cpu or memory or container:
            raise WishError("-f says all sizes; leave out --cpu, --memory and -c")
        return from_template(_template(filename))
    amounts = {name: parse_amount(f"--{name}", text) for name, text in (("cpu", cpu), ("memory", memory)) if text}
    if not amounts:
        raise WishError("say what to change: --cpu, --memory or -f MANIFEST")
    return Wish(amounts, container)


def _template(path: Path) -> Pod:
    """The pod of a manifest, or the pod template of a workload's."""
    try:
        document = yaml.safe_load(path.read_text())
        spec = document["spec"]
        return codec.convert(document if document.get("kind") == "Pod" else spec["template"], Pod)
    except (OSError, yaml.YAMLError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise WishError(f"{path} is not the manifest of a pod or a workload: {error!r}") from error
