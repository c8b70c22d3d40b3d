"""The command line's root. Each verb is a module that is imported when it is called, so that `--help` stays quick."""

import errno
import gc
import io
import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from podfit import __version__
from podfit.cli import exits

if TYPE_CHECKING:
    from cyclopts import App

HELP = """Kubernetes in-place pod vertical scaling: running pods get more or less CPU and memory without a restart.

Exit codes: 0 done, 1 refused, 2 usage, 3 this machine lacks something, 4 the API answered with an error."""

VERBS = {
    "up": ("podfit.cli.processes.up:up", "Start API server, scheduler and node in one process."),
    "apiserver": (
        "podfit.cli.processes.apiserver:apiserver",
        "Serve the API alone, also on an etcd that several share.",
    ),
    "controllers": (
        "podfit.cli.processes.control:controllers",
        "Run the controllers of an API server that runs alone.",
    ),
    "scheduler": ("podfit.cli.processes.control:scheduler", "Run the scheduler of an API server that runs alone."),
    "dns": (
        "podfit.cli.processes.dns:dns",
        "Answer names of Services and pods, and ask this machine's resolvers for others.",
    ),
    "proxy": ("podfit.cli.processes.proxy:proxy", "Lead packets for Services to their endpoints on this machine."),
    "metrics-server": (
        "podfit.cli.processes.metrics_server:metrics_server",
        "Serve metrics.k8s.io, for kubectl top (any cluster).",
    ),
    "cluster-autoscaler": (
        "podfit.cli.processes.cluster_autoscaler:cluster_autoscaler",
        "Add nodes that pods and resizes wait for, remove those that nobody needs (any cluster).",
    ),
    "kubelet": ("podfit.cli.processes.kubelet:kubelet", "Run this machine as a node of an API server somewhere else."),
    "down": ("podfit.cli.down:down", "Stop the cluster of a data directory, containers too."),
    "backup": ("podfit.cli.backup:backup", "Write a cluster's objects into a file, also while it runs."),
    "restore": ("podfit.cli.backup:restore", "Put a backup into a data directory."),
    "doctor": ("podfit.cli.doctor:doctor", "Say what this machine can run, and what mends what it lacks."),
    "status": ("podfit.cli.status:status", "Show what runs: address, nodes, pods."),
    "plan": ("podfit.cli.questions.plan:plan", "Say what a resize would do, before it is done (any cluster)."),
    "resize": ("podfit.cli.questions.resize:resize", "Resize running pods in place, planned first (any cluster)."),
    "why": ("podfit.cli.questions.why:why", "Say why a resize waits, and until when (any cluster)."),
    "top": ("podfit.cli.questions.top:top", "Show usage beside limits, requests and recommendations (any cluster)."),
    "history": (
        "podfit.cli.questions.history:program",
        "Show what containers used, their resizes and OOMs; ask it in SQL.",
    ),
    "allocation": (
        "podfit.cli.questions.allocation:allocation",
        "Sum requests, usage and recommendations by node, namespace or workload (any cluster).",
    ),
    "recommend": (
        "podfit.cli.questions.recommend:recommend_sizes",
        "Say which sizes would be right, why, and what they save (any cluster).",
    ),
    "export": (
        "podfit.cli.questions.export:export_sizes",
        "Write what runs for the next deploy, or find drift (any cluster).",
    ),
    "completion": ("podfit.cli.completion:completion", "Print a script that completes command lines."),
    "version": ("podfit.cli.version:version", "Show which podfit this is."),
    "demo": ("podfit.cli.demo.command:demo", "Start a cluster, resize real containers in place, stop it again."),
}
IMAGE_HELP = "The images that this cluster's node can run."
TOKEN_HELP = "The bootstrap tokens with which machines join."
VPA_HELP = "The processes of the Vertical Pod Autoscaler."
GROUPS = {
    "image": (
        IMAGE_HELP,
        {
            "load": ("podfit.cli.image:load", "Load images from archives into the running cluster."),
            "list": ("podfit.cli.image:list_images", "List the images of the running cluster."),
        },
    ),
    "token": (
        TOKEN_HELP,
        {"create": ("podfit.cli.token:create", "Make a token and print the kubeconfig that a machine joins with.")},
    ),
    "vpa": (
        VPA_HELP,
        {
            "recommender": (
                "podfit.cli.processes.vpa_recommender:recommender",
                "Write recommended sizes into the status of VPAs (any cluster).",
            ),
            "updater": (
                "podfit.cli.processes.vpa_updater:updater",
                "Resize or evict pods that differ from what is recommended (any cluster).",
            ),
            "admission-controller": (
                "podfit.cli.processes.vpa_admission:admission_controller",
                "Give new pods what is recommended (any cluster).",
            ),
        },
    ),
}


MEMBERS = {"history": ("query",)}
"""Verbs that are programs themselves: their first word may be a command, or what they are asked about."""


COLLECT = (200_000, 20, 100)
"""What a command imports stays until it ends: looking for garbage in it every 700 objects is a tenth of its time, and
once, in the 50,000 objects that a question imports, 20 ms."""


def main() -> None:
    """Entry point of the `podfit` program. Ctrl-C may come at any moment, also while modules are loaded.

    Shells start background jobs deaf to it, and `podfit down` asks with it.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.set_threshold(*COLLECT)
    open_streams()
    for stream in (sys.stdout, sys.stderr):  # a locale without arrows shows `?`
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        code = exits.INTERRUPTED
    gc.freeze()  # the end of the process is no moment to look through all of it either
    sys.exit(code)


def open_streams() -> None:
    """Streams that a caller has closed (`>&-`) lead to nobody: else the next file or socket would take their number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nobody = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
            setattr(sys, name, os.fdopen(nobody, "w" if number else "r"))


def run(arguments: list[str]) -> int:
    """Run one command line; answers its exit code."""
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    if arguments in ([], ["-h"], ["--help"], ["--version"]):
        from podfit.cli import render

        if arguments == ["--version"]:
            from podfit.process.data.release import described

            render.line(described())
        else:
            front_page()
        return exits.DONE
    return _dispatch(arguments)


def front_page() -> None:
    """Print the help of the program itself, for which no library is loaded; each verb's comes from its signature."""
    from podfit.cli import render

    verbs = {name: text for name, (_, text) in VERBS.items()} | {name: text for name, (text, _) in GROUPS.items()}
    width = max(map(len, verbs)) + 2
    render.line("Usage: podfit COMMAND")
    for paragraph in HELP.split("\n\n"):
        render.line()
        render.say(paragraph)
    render.line()
    render.line("Commands (each has --help):")
    for name in sorted(verbs):
        render.entry(name, verbs[name], width)
    render.line()
    render.entry("--version", "Show which podfit this is.", width)


def verbs() -> Sequence[str]:
    """Every command, `image load` too."""
    members = (f"{group} {name}" for group, (_, names) in GROUPS.items() for name in names)
    own = (f"{verb} {name}" for verb, names in MEMBERS.items() for name in names)
    return (*VERBS, *GROUPS, *members, *own)


def program() -> "App":
    """The verbs, none of them loaded."""
    from cyclopts import App, Parameter

    from podfit.cli.examples import epilogue

    app = App(
        name="podfit",
        help=HELP,
        version=f"podfit {__version__}",
        result_action="return_value",
        help_format="plaintext",
        default_parameter=Parameter(show_default=_default),
    )
    for name, (target, text) in VERBS.items():
        if name in MEMBERS:
            app.command(target, name=name)
        else:
            app.command(target, name=name, help=text, help_epilogue=epilogue(name))
    for group_name, (group_help, members) in GROUPS.items():
        group = App(name=group_name, help=group_help)
        for name, (target, text) in members.items():
            group.command(target, name=name, help=text, help_epilogue=epilogue(f"{group_name} {name}"))
        app.command(group)
    return app


def _default(value: object) -> str | None:
    """How a default is shown; one that says no more than that nothing was given is not."""
    if value is None or value is False or value in ("", ()):
        return None
    if value is True:
        return "yes"
    return str(getattr(value, "value", value))


def _dispatch(arguments: list[str]) -> int:
    from cyclopts import CycloptsError

    try:
        code = program()(arguments, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        from podfit.cli import usage

        return usage.wrong(usage.explained(error, arguments, verbs()), arguments, verbs())
    except KeyboardInterrupt:
        return exits.INTERRUPTED
    except SystemExit as end:  # cyclopts' on Ctrl-C, else rich's when the reader of a help page left (`| head -1`)
        return exits.INTERRUPTED if end.code == exits.INTERRUPTED else exits.DONE
    except Exception as error:  # noqa: BLE001  (what is no user's situation is raised again, with its traceback)
        return _explain(error, arguments)
    return code if isinstance(code, int) else exits.DONE


def _explain(error: Exception, arguments: list[str]) -> int:
    """Turn what a user's situation can cause into a message; anything else is a bug and keeps its traceback."""
    from podfit.answers.facts.target import TargetError
    from podfit.answers.plan.amounts import OptionError, RequestError
    from podfit.cli import error_messages, render, usage
    from podfit.client.kubeconfig import KubeconfigError
    from podfit.core.errors import ApiError
    from podfit.core.features import FeatureGateError
    from podfit.process.errors import ClusterError, UsageError

    match error:
        case UsageError():
            return usage.wrong(error.message, arguments, verbs(), evidence=error.evidence, fix=error.fix)
        case ClusterError():
            render.cluster_error(error)
            return error.exit_code
        case FeatureGateError():
            return usage.wrong(f"--feature-gates: {error}", arguments, verbs())
        case TargetError() | OptionError() | RequestError():
            return usage.wrong(str(error), arguments, verbs())
        case KubeconfigError():
            return error_messages.kubeconfig(error)
        case ApiError():
            return error_messages.refused(error)
        case ConnectionError():
            return error_messages.silent(error)
        case OSError(errno=errno.ENOSPC, filename=None, strerror=str() as why):  # a help page goes to a full disk
            render.to_nobody(sys.stdout)
            render.error(f"<stdout>: {why.lower()}")
            return exits.MACHINE
        case OSError(filename=str() | bytes() as path, strerror=str() as why):  # a file or directory that was named
            render.error(f"{os.fsdecode(path)}: {why[:1].lower()}{why[1:]}")
            return exits.MACHINE
        case _:
            raise error
