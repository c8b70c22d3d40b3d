"""/healthz, /livez and /readyz, plain or verbose."""

from podfit.net.wire import Request, Response

_TEXT = {"content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff"}
CHECKS = ("ping", "log", "store", "bootstrap")
_WHY = {"store": "it does not answer", "bootstrap": "not finished"}


def health(path: str, request: Request, *, ready: bool, stored: bool) -> Response | None:
    """The answer for a health path, None for any other. `stored`: the store answers, without which nothing is ready."""
    root, _, single = path.strip("/").partition("/")
    if root not in ("healthz", "livez", "readyz") or single.count("/"):
        return None
    if single and single not in CHECKS:
        return None
    judged = {"bootstrap": ready, "store": stored} if root == "readyz" else {}
    results = {check: judged.get(check, True) for check in CHECKS}
    if single:
        results = {single: results[single]}
    well = all(results.values())
    if well and "verbose" not in request.query:
        return Response(200, _TEXT, b"ok")
    lines = [f"[+]{name} ok" if good else f"[-]{name} failed: {_WHY[name]}" for name, good in results.items()]
    verdict = f"{root} check {'passed' if well else 'failed'}"
    return Response(200 if well else 500, _TEXT, "\n".join([*lines, verdict, ""]).encode())
