"""/healthz, /livez and /readyz, plain or verbose, whole or one check, with checks left out by `exclude`.

A server that is about to stop says so on /readyz before it stops anything, so that nobody is sent to it any more.
"""

from podfit.net.wire import Request, Response

_TEXT = {"content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff"}
CHECKS = ("ping", "log", "store", "bootstrap")
ROOTS = {"healthz": CHECKS, "livez": CHECKS, "readyz": (*CHECKS, "store-writes", "shutdown")}
_WHY = {"store": "it does not answer", "bootstrap": "not finished", "shutdown": "the server is about to stop"}


def health(
    path: str, request: Request, *, ready: bool, stored: bool, problem: str = "", stopping: bool = False
) -> Response | None:
    """The answer for a health path, None for any other. `stored`: the store answers, without which nothing is ready;
    `problem`: why it takes no writes, empty when it does."""
    root, _, single = path.strip("/").partition("/")
    checks = ROOTS.get(root)
    if checks is None or (single and single not in checks):
        return None
    judged = (
        {"bootstrap": ready, "store": stored, "store-writes": not problem, "shutdown": not stopping}
        if root == "readyz"
        else {}
    )
    excluded = [check for check in request.query.get("exclude", ()) if check]
    named = (single,) if single else checks
    results = {check: judged.get(check, True) for check in named}
    well = all(good for check, good in results.items() if check not in excluded)
    if well and "verbose" not in request.query:
        return Response(200, _TEXT, b"ok")
    why = _WHY | {"store-writes": problem}
    lines = [_line(check, good, check in excluded, why.get(check, "")) for check, good in results.items()]
    if wrong := [f'"{check}"' for check in excluded if check not in results]:
        lines.append(f"warn: some health checks cannot be excluded: no matches for {', '.join(wrong)}")
    verdict = f"{root} check {'passed' if well else 'failed'}"
    return Response(200 if well else 500, _TEXT, "\n".join([*lines, verdict, ""]).encode())


def _line(check: str, good: bool, excluded: bool, why: str) -> str:
    if excluded:
        return f"[+]{check} excluded: ok"
    return f"[+]{check} ok" if good else f"[-]{check} failed: {why}"
