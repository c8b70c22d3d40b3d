"""Warnings that follow from a request rather than from an object, with inputs that are in no recording.

Known from upstream's code: `AddWarningsHandler` of deprecated versions, `REST.Delete` and `REST.DeleteCollection` of
jobs, `warningsForSecret` and Go's `tls.X509KeyPair`.
"""

import re
from typing import Any

import pytest

from support.rules import CONFIGMAPS, NAMESPACE, configmap, made
from support.server import Server

JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
CRONJOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/cronjobs"
ENDPOINTS = f"/api/v1/namespaces/{NAMESPACE}/endpoints"
PODS_STAY = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)
DEPRECATED = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"


def job(name: str) -> dict[str, Any]:
    spec = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    return {"metadata": {"name": name}, "spec": {"template": {"spec": spec}}}


def cron_job(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": job("")["spec"]}}}


async def warned(server: Server, method: str, path: str, body: Any = b"") -> list[str]:
    answer = await server.ask(method, path, body)
    return re.findall(r'299 - "((?:[^"\\]|\\.)*)"', answer.headers.get("warning", ""))


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        (f"{JOBS}/j", b"", [PODS_STAY]),
        (f"{JOBS}/j", b'{"kind":"DeleteOptions","apiVersion":"v1"}', [PODS_STAY]),
        (f"{JOBS}/j?dryRun=All", b"", [PODS_STAY]),
        (JOBS, b"", [PODS_STAY]),
        (f"{JOBS}/nope", b"", [PODS_STAY]),
        (f"{JOBS}/j?propagationPolicy=Background", b"", []),
        (f"{JOBS}/j", b'{"propagationPolicy":"Orphan"}', []),
        (f"{JOBS}/j?orphanDependents=false", b"", []),
        (f"{JOBS}?propagationPolicy=Foreground", b"", []),
        (f"{CRONJOBS}/c", b"", []),
    ],
)
async def test_jobs_that_leave_their_pods_behind(server: Server, path: str, body: bytes, said: list[str]) -> None:
    await server.namespace(NAMESPACE)
    await made(server, JOBS, job("j"))
    await made(server, CRONJOBS, cron_job("c"))
    assert await warned(server, "DELETE", path, body) == said


@pytest.mark.parametrize(
    ("method", "path", "body", "said"),
    [
        ("GET", ENDPOINTS, b"", [DEPRECATED]),
        ("GET", "/api/v1/endpoints", b"", [DEPRECATED]),
        ("GET", f"{ENDPOINTS}/nope", b"", [DEPRECATED]),
        ("PUT", f"{ENDPOINTS}/e", b'{"metadata":{"name":"e"}}', [DEPRECATED]),
        ("POST", ENDPOINTS, b'{"metadata":{"name":"E"}}', [DEPRECATED]),
        ("POST", ENDPOINTS, b'{"metadata":{"name":"e"},"x":1}', [DEPRECATED, r"unknown field \"x\""]),
        ("DELETE", ENDPOINTS, b"", [DEPRECATED]),
        ("GET", CONFIGMAPS, b"", []),
    ],
)
async def test_what_is_deprecated(server: Server, method: str, path: str, body: bytes, said: list[str]) -> None:
    await server.namespace(NAMESPACE)
    await made(server, CONFIGMAPS, configmap("a"))
    assert await warned(server, method, path, body) == said
