"""What a user's situation does to every question: cause, evidence, one command that helps, an exit code."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from answers.conversation import METRICS, NODE, PODS, Conversation, pod
from answers.test_top import DEPLOYMENT
from cli.test_questions import ask, kubeconfig
from podfit.cli.app import run
from podfit.client.kubeconfig import Access, load
from podfit.client.kubeconfig_edit import standalone
from podfit.net.authority import Authority
from podfit.net.system import SystemClock

VERBS: dict[str, list[str]] = {
    "plan": ["plan", "pod/web", "--cpu", "700m"],
    "why": ["why", "pod/web"],
    "top": ["top", "pod/web"],
    "resize": ["resize", "pod/web", "--cpu", "700m"],
    "export": ["export", "pod/web"],
}
ALL = pytest.mark.parametrize("verb", list(VERBS))
QUIET_LISTS = (
    "/api/v1/pods",
    NODE,
    f"{NODE}/proxy/configz",
    "/api/v1/namespaces/shop/limitranges",
    "/api/v1/namespaces/shop/resourcequotas",
    METRICS,
)


def told(capsys: pytest.CaptureFixture[str], *parts: str) -> None:
    """On stderr, as one error, with one command that helps."""
    captured = capsys.readouterr()
    assert [part for part in parts if part not in captured.err] == []
    assert captured.err.count("error: ") == 1
    assert ("Traceback" in captured.err, captured.out) == (False, "")


@ALL
def test_no_kubeconfig(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*VERBS[verb], "--kubeconfig", str(tmp_path / "none")]) == 3
    told(capsys, f"error: {tmp_path / 'none'}: no such file", "--kubeconfig or KUBECONFIG", "podfit up --detach")


@ALL
def test_no_server(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "kubeconfig"
    path.write_bytes(standalone("test", Access("https://127.0.0.1:9", token="t")))
    assert run([*VERBS[verb], "--kubeconfig", str(path)]) == 4
    told(capsys, "no answer from the API server https://127.0.0.1:9: connection refused\n", "kubectl cluster-info")


def _over() -> tuple[bytes, bytes]:
    """A certificate that ended in 2020, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "old")])
    begins, until = datetime(2019, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), 7, begins, until).sign(key, hashes.SHA256())
    plain = serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    return made.public_bytes(serialization.Encoding.PEM), private


async def test_a_certificate_that_is_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever hangs up at it is told apart from nobody."""
    certificate, key = _over()
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    path = tmp_path / "kubeconfig"
    path.write_bytes(standalone("test", Access(f"https://127.0.0.1:{port}", certificate=certificate, key=key)))
    assert await asyncio.to_thread(run, [*VERBS["why"], "--kubeconfig", str(path)]) == 4
    told(capsys, "hung up: the client certificate of the kubeconfig ended at 2020-01-01T00:00:00Z", "new kubeconfig")
    server.close()
    await server.wait_closed()
    assert await asyncio.to_thread(run, [*VERBS["why"], "--kubeconfig", str(path)]) == 4
    told(capsys, "connection refused\n", "kubectl cluster-info")


@ALL
async def test_another_authority(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other"
    other.mkdir()
    authority = Authority.load(other, clock=SystemClock())
    async with kubeconfig(tmp_path, Conversation(36, pod())) as path:
        server = load([Path(path)]).server
        wrong = other / "kubeconfig"
        wrong.write_bytes(standalone("test", Access(server, authority.certificate, token="t")))
        assert await asyncio.to_thread(run, [*VERBS[verb], "--kubeconfig", str(wrong)]) == 4
    told(capsys, f"the certificate of the API server {server} cannot be trusted: ", "kubectl config view --minify")


@ALL
async def test_no_rights_at_all(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conversation = Conversation(36, pod())
    conversation.denied = {f"{PODS}/web"}
    assert await ask(tmp_path, conversation, *VERBS[verb]) == 4
    told(capsys, 'User "jo" cannot list resource "pods"', "kubectl auth can-i list pods -n shop")


@ALL
async def test_not_known_to_the_server(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conversation = Conversation(36, pod())
    conversation.documents |= {"/version": 401, f"{PODS}/web": 401}
    assert await ask(tmp_path, conversation, *VERBS[verb]) == 4
    told(capsys, "kubectl auth whoami")


@pytest.mark.parametrize("path", QUIET_LISTS)
@pytest.mark.parametrize("verb", ["plan", "why", "export"])
async def test_a_right_that_is_missing_is_said_and_the_rest_answered(
    verb: str, path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conversation = Conversation(36, pod(), forbidden=(path,))
    code = await ask(tmp_path, conversation, *VERBS[verb])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    unknown = verb == "plan" and path in (NODE, "/api/v1/pods")
    assert code == (1 if unknown else 0), "without the node and its pods there is no verdict"
    assert ("not known" in captured.out) == unknown
    if verb == "plan" and path != METRICS:
        assert f"cannot list {path}" in captured.out


async def test_why_usage_is_not_known_is_said_where_it_matters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conversation = Conversation(36, pod(), forbidden=(METRICS,))
    assert await ask(tmp_path, conversation, "plan", "pod/web", "--memory", "200Mi") == 0
    out = capsys.readouterr().out
    assert "memory usage is not known here; the node compares it with the new limit first" in out
    assert f"cannot list {METRICS}" in out


@ALL
async def test_no_such_pod_and_no_such_namespace(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    absent = [part.replace("pod/web", "pod/none") for part in VERBS[verb]]
    assert await ask(tmp_path, Conversation(36, pod()), *absent) == 4
    told(capsys, "could not find")
    assert await ask(tmp_path, Conversation(36, pod()), *absent, "-n", "nowhere") == 4
    told(capsys, 'namespaces "nowhere" not found', "kubectl get namespaces")


async def test_an_empty_namespace_is_not_one_that_is_absent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conversation = Conversation(36)
    conversation.documents |= {PODS: {"items": []}, "/api/v1/namespaces/nowhere/pods": {"items": []}}
    assert await ask(tmp_path, conversation, "top") == 0
    capsys.readouterr()
    assert await ask(tmp_path, conversation, "top", "-n", "nowhere") == 4
    told(capsys, 'namespaces "nowhere" not found')


@ALL
async def test_a_kind_that_there_is_not(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd = [part.replace("pod/web", "gizmo/web") for part in VERBS[verb]]
    assert await ask(tmp_path, Conversation(36, pod()), *odd) == 2
    told(capsys, '"gizmo/web" is not one of pod/NAME, deployment/NAME')
    absent = [part.replace("pod/web", "deploy/web") for part in VERBS[verb]]
    assert await ask(tmp_path, Conversation(36, pod()), *absent) == 4
    told(capsys, "this cluster does not serve deployments", "kubectl api-resources")


@pytest.mark.parametrize("verb", ["plan", "resize"])
async def test_a_container_that_there_is_not(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert await ask(tmp_path, Conversation(36, pod()), *VERBS[verb], "-c", "db") == 2
    told(capsys, 'pod web has no container "db"; it has app')


@ALL
async def test_something_else_answers(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conversation = Conversation(36, pod())
    conversation.documents["/version"] = "<html>please log in</html>"
    assert await ask(tmp_path, conversation, *VERBS[verb]) == 4
    told(capsys, "what it says is not what a Kubernetes API says", "kubectl cluster-info")


@pytest.mark.parametrize(
    ("verb", "code", "said"),
    [
        ("plan", 1, "1.27 is the first that can"),
        ("resize", 1, "1.27 is the first that can"),
        ("why", 0, "1.27 is the first that can"),
        ("top", 4, "1.27 is the first that can"),
        ("export", 0, "cpu: 500m"),
    ],
)
async def test_an_old_server(
    verb: str, code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conversation = Conversation(26, pod())
    assert await ask(tmp_path, conversation, *VERBS[verb]) == code
    captured = capsys.readouterr()
    assert said in captured.out + captured.err
    assert "Traceback" not in captured.err
    assert {method for method, _ in conversation.asked} == {"GET"}


@ALL
@pytest.mark.parametrize("form", ["text", "wide", "json", "yaml"])
async def test_every_form_of_every_answer(
    verb: str, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conversation = Conversation(36, pod())
    metrics: dict[str, Any] = {"items": []}
    conversation.documents |= {
        f"{PODS}/web/resize": pod(),
        "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods": metrics,
    }
    more = ["--dry-run"] if verb == "resize" else []
    assert await ask(tmp_path, conversation, *VERBS[verb], *more, "-o", form, "-n", "shop", "--context", "test") == 0
    out = capsys.readouterr().out
    assert out.lstrip().startswith(("{", "[")) == (form == "json")


@ALL
async def test_a_form_that_there_is_not(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert await ask(tmp_path, Conversation(36, pod()), *VERBS[verb], "-o", "xml") == 2
    told(capsys, "xml")


async def test_workloads_without_the_right_to_see_their_pods(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conversation = Conversation(36, pod())
    conversation.denied = {PODS}
    selector = {"matchLabels": {"app": "web"}}
    conversation.documents[DEPLOYMENT] = {"spec": {"selector": selector, "template": {"spec": pod()["spec"]}}}
    for verb in VERBS:
        of_a_workload = [part.replace("pod/web", "deploy/web") for part in VERBS[verb]]
        assert await ask(tmp_path, conversation, *of_a_workload) == 4
        told(capsys, "kubectl auth can-i list pods -n shop")
