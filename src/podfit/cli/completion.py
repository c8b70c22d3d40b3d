"""`podfit completion`: what a shell needs to complete command lines, made from the verbs themselves."""

from typing import Annotated, Literal

from cyclopts import Parameter

from podfit.cli import exits, render
from podfit.cli.app import program

ZSH_END = """\
if [[ ${funcstack[1]} = _cyclopts_podfit ]]; then _cyclopts_podfit "$@"; else compdef _cyclopts_podfit podfit; fi"""
"""The generated script only defines the function: this runs it when autoloaded, and makes it known when sourced."""


def completion(shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="bash, zsh or fish")], /) -> int:
    """Print a script that completes command lines: `source <(podfit completion bash)` (fish: `| source`)."""
    render.block(program().generate_completion(prog_name="podfit", shell=shell))
    if shell == "zsh":
        render.block(ZSH_END)
    return exits.DONE
