"""Error messages for situations of the user's cluster, each with cause, evidence and one command that helps."""

import os
import ssl
from pathlib import Path

from podfit.answers.facts.rights import missing_right
from podfit.cli import exits, render
from podfit.cli.cluster_questions import NoAnswer, commands
from podfit.client.kubeconfig import KubeconfigError, NoContext, NoKubeconfig, find
from podfit.core.errors import ApiError
from podfit.core.times import format_time
from podfit.net.certificate_signing import ends
from podfit.net.system import SystemClock

_NEW = "get a new kubeconfig from whoever made it; `podfit up` writes one with every start"


def kubeconfig(error: KubeconfigError) -> int:
    match error:
        case NoKubeconfig():
            fix = ["name a file that exists with --kubeconfig or KUBECONFIG", "or start a cluster:  podfit up --detach"]
        case NoContext():
            fix = [f"list the contexts:  {commands().kubectl_config('get-contexts')}"]
        case _:
            fix = ["correct it, or name another kubeconfig with --kubeconfig or KUBECONFIG"]
    render.error(str(error), fix=fix)
    return exits.MACHINE


def silent(error: ConnectionError) -> int:
    server = f" {error.server}" if isinstance(error, NoAnswer) else ""
    cause = _cause(error)
    over = _certificate_is_over() if _hung_up(cause) else ""
    if isinstance(cause, ssl.SSLCertVerificationError):
        text = f"the certificate of the API server{server} cannot be trusted: {cause.verify_message}"
        fix = f"see which authority the kubeconfig names:  {commands().kubectl_anywhere('config', 'view', '--minify')}"
    elif over:
        text, fix = f"the API server{server} hung up: {over}", _NEW
    else:
        text = f"no answer from the API server{server}: {_plain(error, cause)}"
        fix = f"see whether it answers:  {commands().kubectl_anywhere('cluster-info')}"
    render.error(text, fix=(fix,))
    return exits.API


def _hung_up(cause: BaseException) -> bool:
    """Whether somebody was there."""
    return isinstance(cause, ConnectionResetError | ssl.SSLError) or not isinstance(cause, OSError)


def _certificate_is_over() -> str:
    """When the certificate that the kubeconfig shows ended; empty when it did not, or when there is none. Some servers
    answer with it that nobody is known, others close the connection."""
    asked = commands()
    try:
        access = find(os.environ, Path(asked.kubeconfig) if asked.kubeconfig else None, context=asked.context)
        end = ends(access.certificate) if access.certificate else None
    except (OSError, ValueError):  # a KubeconfigError is such, too
        return ""
    if end is None or end > SystemClock().now():
        return ""
    return f"the client certificate of the kubeconfig ended at {format_time(end)}"


def _cause(error: BaseException) -> BaseException:
    """What began it."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _plain(error: ConnectionError, cause: BaseException) -> str:
    """Without the address once more, and without numbers of the operating system."""
    if isinstance(cause, OSError) and cause.errno and cause.strerror and not isinstance(cause, ssl.SSLError):
        reason = os.strerror(cause.errno) if cause.errno > 0 else cause.strerror  # names are looked up by other numbers
        return reason[:1].lower() + reason[1:]
    server = error.server if isinstance(error, NoAnswer) else ""
    return str(error).removeprefix(f"{server.rstrip('/')}: ")


def refused(error: ApiError) -> int:
    """In the API's own words; what would help follows from its code."""
    fix = {
        401: f"see whom the kubeconfig names:  {commands().kubectl_anywhere('auth', 'whoami')}",
        403: _may(error),
        404: _where(error),
    }.get(error.code, "")
    over = _certificate_is_over() if error.code == 401 else ""
    if over:
        render.error(f"{error.message or 'Unauthorized'}: {over}", fix=(_NEW,))
        return exits.API
    render.error(error.message or f"the API server answered {error.code}", fix=filter(None, (fix,)))
    return exits.API


def _may(error: ApiError) -> str:
    """The right that is missing, to be asked for by its name."""
    right = missing_right(error)
    if right is None:
        return f"see what you are allowed to do:  {commands().kubectl('auth', 'can-i', '--list')}"
    where = ("-n", right.namespace) if right.namespace else ("-A",)
    see = commands().kubectl_anywhere("auth", "can-i", right.verb, right.resource, *where)
    return f"ask for the right, and see:  {see}"


def _where(error: ApiError) -> str:
    kind = str(error.details.get("kind") or "")
    if kind in ("namespaces", "nodes"):
        return f"list them:  {commands().kubectl_anywhere('get', kind)}"
    if kind and error.details.get("name"):
        group = error.details.get("group")
        resource = kind + (f".{group}" if group else "")
        return f"list them:  {commands().kubectl_anywhere('get', resource, '-A')}"
    return f"see what is served:  {commands().kubectl_anywhere('api-resources')}"
