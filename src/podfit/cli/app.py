"""The command line. Each verb is a module that is imported when it is called, so that `podfit --help` stays quick."""

import gc
import signal
import sys
from typing import TYPE_CHECKING

from podfit import __version__
from podfit.cli import exits

if TYPE_CHECKING:
    from cyclopts import App

HELP = """Kubernetes in-place pod vertical scaling: running pods get more or less CPU and memory without a restart.

Exit codes: 0 done, 1 refused, 2 usage, 3 this machine lacks something, 4 the API answered with an error."""

VERBS = {
    "up": ("podfit.cli.up:up", "Start API server, scheduler and node in one process."),
    "apiserver": ("podfit.cli.apiserver:apiserver", "Serve the API alone, also on an etcd that several share."),
    "down": ("podfit.cli.down:down", "Stop the cluster of a data directory, containers too."),
    "backup": ("podfit.cli.backup:backup", "Write a cluster's objects into a file, also while it runs."),
    "restore": ("podfit.cli.backup:restore", "Put a backup into a data directory."),
    "status": ("podfit.cli.status:status", "Show what runs: address, nodes, pods."),
    "plan": ("podfit.cli.plan:plan", "Say what a resize would do, before it is done (any cluster)."),
    "resize": ("podfit.cli.resize:resize", "Resize running pods in place, planned first (any cluster)."),
    "why": ("podfit.cli.why:why", "Say why a resize waits, and until when (any cluster)."),
    "top": ("podfit.cli.top:top", "Show usage beside limits, requests and recommendations (any cluster)."),
    "export": ("podfit.cli.export:export_sizes", "Write what runs for the next deploy, or find drift (any cluster)."),
    "completion": ("podfit.cli.completion:completion", "Print a script that completes command lines."),
    "demo": ("podfit.cli.demo.command:demo", "Start a cluster, resize real containers in place, stop it again."),
}
IMAGE_HELP = "The images that this cluster's node can run."
IMAGE_VERBS = {
    "load": ("podfit.cli.image:load", "Load images from archives into the running cluster."),
    "list": ("podfit.cli.image:list_images", "List the images of the running cluster."),
}


COLLECT = (50_000, 20, 100)
"""What a command imports stays until it ends: looking for garbage in it every 700 objects is a tenth of its time."""


def main() -> None:
    """Entry point of the `podfit` program. Ctrl-C may come at any moment, also while modules are loaded.

    Shells start background jobs deaf to it, and `podfit down` asks with it.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.set_threshold(*COLLECT)
    try:
        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        code = exits.INTERRUPTED
    gc.freeze()  # the end of the process is no moment to look through all of it either
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run one command line; answers its exit code."""
    if arguments in ([], ["-h"], ["--help"], ["--version"]):
        from podfit.cli import render

        render.line(f"podfit {__version__}" if arguments == ["--version"] else front_page())
        return exits.DONE
    return _dispatch(arguments)


def front_page() -> str:
    """The help of the program itself, for which no library has to be loaded; each verb's comes from its signature."""
    verbs = {name: text for name, (_, text) in VERBS.items()} | {"image": IMAGE_HELP}
    width = max(map(len, verbs)) + 2
    lines = (f"  {name:<{width}}{verbs[name]}" for name in sorted(verbs))
    options = f"  {'--version':<{width}}Show which podfit this is."
    return "\n".join(("Usage: podfit COMMAND", "", HELP, "", "Commands (each has --help):", *lines, "", options))


def program() -> "App":
    """The verbs, none of them loaded."""
    from cyclopts import App

    app = App(name="podfit", help=HELP, version=f"podfit {__version__}", result_action="return_value")
    for name, (target, text) in VERBS.items():
        app.command(target, name=name, help=text)
    image = App(name="image", help=IMAGE_HELP)
    for name, (target, text) in IMAGE_VERBS.items():
        image.command(target, name=name, help=text)
    app.command(image)
    return app


def _dispatch(arguments: list[str]) -> int:
    from cyclopts import CycloptsError

    try:
        code = program()(arguments, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        from podfit.cli import render

        render.error(str(error), fix=("see:  podfit --help",))
        return exits.USAGE
    except KeyboardInterrupt:
        return exits.INTERRUPTED
    except Exception as error:  # noqa: BLE001  (what is no user's situation is raised again, with its traceback)
        return _explain(error)
    return code if isinstance(code, int) else exits.DONE


def _explain(error: Exception) -> int:
    """Turn what a user's situation can cause into a message; anything else is a bug and keeps its traceback."""
    from podfit.answers.target import TargetError
    from podfit.answers.wish import WishError
    from podfit.cli import mishaps, render
    from podfit.client.kubeconfig import KubeconfigError
    from podfit.cluster.errors import ClusterError
    from podfit.core.errors import ApiError
    from podfit.core.features import FeatureGateError

    match error:
        case ClusterError():
            render.cluster_error(error)
            return error.exit_code
        case FeatureGateError():
            render.error(f"--feature-gates: {error}")
            return exits.USAGE
        case TargetError() | WishError():
            render.error(str(error))
            return exits.USAGE
        case KubeconfigError():
            return mishaps.kubeconfig(error)
        case ApiError():
            return mishaps.refused(error)
        case ConnectionError():
            return mishaps.silent(error)
        case _:
            raise error
