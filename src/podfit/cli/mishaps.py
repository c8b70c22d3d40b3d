"""What a user's situation can do to a question, each with its cause, the evidence and one command that helps."""

import re

from podfit.cli import exits, render
from podfit.cli.asking import NoAnswer
from podfit.client.kubeconfig import KubeconfigError
from podfit.core.errors import ApiError

_CANNOT = re.compile(
    r'cannot (?P<verb>\w+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]+)")?')


def kubeconfig(error: KubeconfigError) -> int:
    render.error(str(error), fix=("see what there is:  kubectl config get-contexts",))
    return exits.MACHINE


def silent(error: ConnectionError) -> int:
    server = f" {error.server}" if isinstance(error, NoAnswer) else ""
    render.error(f"no answer from the API server{server}: {error}", fix=("is it there?  kubectl cluster-info",))
    return exits.API


def refused(error: ApiError) -> int:
    """In the API's own words; what would help follows from its code."""
    fix = {401: "who are you to it?  kubectl auth whoami", 403: _may(error), 404: _where(error)}.get(error.code, "")
    render.error(error.message or f"the API server answered {error.code}", fix=filter(None, (fix,)))
    return exits.API


def _may(error: ApiError) -> str:
    """The right that is missing, to be asked for by its name."""
    told = _CANNOT.search(error.message)
    if told is None:
        return "what may you do?  kubectl auth can-i --list"
    resource = told["resource"] + (f".{told['group']}" if told["group"] else "")
    where = f" -n {told['namespace']}" if told["namespace"] else " -A"
    return f"ask for the right, and see:  kubectl auth can-i {told['verb']} {resource}{where}"


def _where(error: ApiError) -> str:
    kind = str(error.details.get("kind") or "")
    if kind == "namespaces":
        return "see which there are:  kubectl get namespaces"
    if kind and error.details.get("name"):
        group = error.details.get("group")
        return f"see which there are:  kubectl get {kind}{f'.{group}' if group else ''} -A"
    return "see what is served:  kubectl api-resources"
