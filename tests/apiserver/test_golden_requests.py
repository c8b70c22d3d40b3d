"""Requests that are wrong as requests, or go where nothing is: compared with what a real Kubernetes 1.36 answered.

Of `api/validation.json` every case about what is served that the pure rules do not judge: bodies that are no objects or
of another kind, fields of other types, media types, paths, methods, queries, revisions. A case stands in DEVIATIONS or
OWN_TEXT, with its reason, or its whole answer agrees.
"""

import json

from api.test_golden_validation import OTHERS, STRATEGY, is_create, is_pod_change
from apiserver.test_golden_api import REVIEWS, check, refused_alike
from apiserver.test_golden_kinds import wanted as of_kinds
from support.golden import Case, parametrize
from support.replay import DEFINITIONS, served
from support.server import Server

_SCANNER = "code and reason agree; upstream quotes its scanner"
_QUOTED = "code and reason agree; upstream quotes the whole patched object, we quote the patch"
_FAULT = "upstream answers 500 to what is the client's mistake"
OWN_TEXT = {
    "body-yaml-malformed": _SCANNER,
    "strict-patch-merge": _QUOTED,
    "strict-patch-json": _QUOTED,
    "immutable-job-template": "code and reason agree; upstream prints its inner form of the pod",
    "configmap-key-dotdot": "code and reason agree; upstream looks at keys in no order, ours are sorted",
}
DEVIATIONS = {
    "apply-unknown-field": _FAULT,
    "put-rv-bad": _FAULT,
    "put-rv-negative": _FAULT,
    "body-413": "the limit of a body is enforced where it is received, before the answer is made",
    "path-trailing-slash": "the recorded cluster's controllers had made what is listed",
    "path-api-v1-slash": "the list of what is served",
    "path-bad-escape": "an escaped slash in a name is read as part of it",
    "method-post-root": "the index lists what is served",
}


def _ours(case: Case) -> bool:
    judged = is_create(case) or is_pod_change(case) or case["id"] in OTHERS
    custom = DEFINITIONS in json.dumps([case["request"], case.get("setup") or []])
    elsewhere = custom or of_kinds(case) or any(f"/apis/{group}/" in case["request"]["path"] for group in REVIEWS)
    return served(case) and not elsewhere and (not judged or case["id"] in STRATEGY)


@parametrize("api/validation.json", lambda case: _ours(case) and case["id"] not in {**OWN_TEXT, **DEVIATIONS})
async def test_requests(server: Server, case: Case) -> None:
    await check(server, case)


@parametrize("api/validation.json", lambda case: case["id"] in OWN_TEXT, whole=lambda _: False)
async def test_refusals_in_our_words(server: Server, case: Case) -> None:
    await refused_alike(server, case)
