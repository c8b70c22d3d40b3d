"""Bodies: what occurs twice, what is unknown, YAML; with inputs that are in no recording.

Known from upstream's code and its field validation tests: sigs.k8s.io/json (`UnmarshalStrict`), sigs.k8s.io/yaml on
go-yaml v2 (its resolver, `line N: key "x" already set in map`), `applyJSPatch`, `applyPatcher`.
"""

from typing import Any

import pytest

from podfit.apiserver.request.yaml_documents import parse_yaml_strictly
from podfit.core.errors import ApiError
from support.rules import CONFIGMAPS, DEPLOYMENTS, NAMESPACE, asked, configmap, made
from support.server import Server

YAML, APPLY = "application/yaml", "application/apply-patch+yaml"
MERGE, OPERATIONS = "application/merge-patch+json", "application/json-patch+json"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("y", True),
        ("N", False),
        ("on", True),
        ("Off", False),
        ("yes", True),
        ("nO", "nO"),
        ("1:30", "1:30"),
        ("1e3", 1000),
        ("1.0", 1),
        ("0644", 420),
        ("0x1F", 31),
        ("1_000", 1000),
        (".5", 0.5),
        ("1.2.3", "1.2.3"),
        ("2026-01-01", "2026-01-01"),
        ("~", None),
        ("'y'", "y"),
        ("+1", 1),
        ("-", None),
        ("1e", "1e"),
        ("0b11", 3),
        ("0o17", "0o17"),
    ],
)
def test_scalars_of_yaml(text: str, value: Any) -> None:
    body = f"a: {text}\n" if text != "-" else "a:\n"
    found = parse_yaml_strictly(body.encode())[0]["a"]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("body", "value", "lines"),
    [
        ("a: 1\na: 2\n", {"a": 2}, ['line 2: key "a"']),
        ("1: a\ntrue: b\n", {"1": "a", "true": "b"}, []),
        ("a:\n  b: 1\n  b:\n    c: 1\n", {"a": {"b": {"c": 1}}}, ['line 4: key "b"']),
        ("a: 1\n---\n{bad", {"a": 1}, []),
        ("x: &x {a: 1, b: 1}\nz: {<<: *x, b: 2}\n", {"x": {"a": 1, "b": 1}, "z": {"a": 1, "b": 2}}, []),
        ("y: 1", {"true": 1}, []),
        ("", None, []),
        ('{"a": 1, "a": 2}', {"a": 2}, ['line 1: key "a"']),
    ],
)
def test_documents_of_yaml(body: str, value: Any, lines: list[str]) -> None:
    found, problems = parse_yaml_strictly(body.encode())
    listed = "\n  ".join(f"{line} already set in map" for line in lines)
    told = [f"yaml: unmarshal errors:\n  {listed}"] if lines else []
    assert (found, problems) == (value, told)


@pytest.mark.parametrize("body", ["a: .nan", "null: 1", "a: !!binary aGk=", "? [1]\n: 2", "a: [", "%"])
def test_yaml_that_json_does_not_have(body: str) -> None:
    with pytest.raises(ApiError) as refused:
        parse_yaml_strictly(body.encode())
    assert refused.value.code == 400


TWICE = (
    b'{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"d","labels":{"a":"1","a":"2"}},"spec":{"odd":1,'
    b'"odd":2,"paused":true,"paused":false,"selector":{"matchLabels":{"a":"b"}},"selector":{"matchLabels":{"c":"d"}},'
    b'"template":{"metadata":{"labels":{"a":"b","c":"d"}},"spec":{"containers":[{"name":"c","image":"i","odd":1,'
    b'"image":"j"}]}}}}'
)
TOLD = [
    'duplicate field "metadata.labels.a"',
    'unknown field "spec.odd"',
    'duplicate field "spec.paused"',
    'duplicate field "spec.selector"',
    'unknown field "spec.template.spec.containers[0].odd"',
    'duplicate field "spec.template.spec.containers[0].image"',
]


@pytest.mark.parametrize("level", ["Strict", "Warn", "Ignore"])
async def test_json_with_members_that_occur_twice(server: Server, level: str) -> None:
    await server.namespace(NAMESPACE, certificate=False)
    answer = await server.ask("POST", f"{DEPLOYMENTS}?fieldValidation={level}", TWICE)
    body = (await answer.read()).decode()
    if level == "Strict":
        assert answer.status == 400
        assert f"strict decoding error: {', '.join(TOLD)}".replace('"', r"\"") in body
        return
    assert answer.status == 201
    assert '"matchLabels":{"a":"b","c":"d"}' in body
    warned = answer.headers.get("warning", "").replace(r"\"", '"')
    assert [told in warned for told in TOLD] == [level == "Warn"] * len(TOLD)


DOUBLED = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: x\n  k: z\n"


@pytest.mark.parametrize(
    ("method", "path", "query", "body", "kind", "code", "text"),
    [
        (
            "POST",
            CONFIGMAPS,
            "",
            DOUBLED.replace(b"name: a", b"name: b"),
            YAML,
            400,
            'line 7: key "k" already set in map',
        ),
        ("PUT", f"{CONFIGMAPS}/a", "", DOUBLED, YAML, 400, 'line 7: key "k" already set in map'),
        (
            "PATCH",
            f"{CONFIGMAPS}/a",
            "&fieldManager=m&force=1",
            DOUBLED,
            APPLY,
            400,
            "error strict decoding YAML: error con",
        ),
        (
            "PATCH",
            f"{CONFIGMAPS}/new",
            "&fieldManager=m",
            DOUBLED.replace(b"name: a", b"name: new"),
            APPLY,
            400,
            "strict",
        ),
        ("PATCH", f"{CONFIGMAPS}/a", "", b'{"data":{"k":"1","k":"2"},"z":1}', MERGE, 422, 'duplicate field "data.k"'),
        (
            "PATCH",
            f"{CONFIGMAPS}/a",
            "",
            b'[{"op":"test","path":"/kind","value":"ConfigMap","foo":1}]',
            OPERATIONS,
            422,
            'json patch unknown field "[0].foo"',
        ),
        (
            "PATCH",
            f"{CONFIGMAPS}/a",
            "",
            b'[{"op":"test","path":"/","path":"/kind","value":"ConfigMap"}]',
            OPERATIONS,
            422,
            'json patch duplicate field "[0].path"',
        ),
        (
            "PATCH",
            f"{CONFIGMAPS}/a",
            "",
            b'[{"op":"test","path":1}]',
            OPERATIONS,
            400,
            "error decoding patch: json: cannot",
        ),
    ],
)
async def test_strict_and_lenient(
    server: Server, method: str, path: str, query: str, body: bytes, kind: str, code: int, text: str
) -> None:
    await server.namespace(NAMESPACE, certificate=False)
    await made(server, CONFIGMAPS, configmap("a"))
    strict = await asked(server, method, f"{path}?dryRun=All&fieldValidation=Strict{query}", body, content_type=kind)
    assert (strict.code, text in strict.message) == (code, True), strict.message
    lenient = await asked(server, method, f"{path}?dryRun=All&fieldValidation=Ignore{query}", body, content_type=kind)
    assert lenient.code in ((422,) if text.endswith("cannot") else (200, 201)), lenient.message


@pytest.mark.parametrize(
    ("method", "body", "said"),
    [
        ("POST", b'{"a" 1}', "invalid character '1' after object key ({\"a\" 1})"),
        (
            "POST",
            b'{"kind":"ConfigMap","data":{"a":1 2}}',
            'invalid character \'2\' after object key:value pair ({"kind":"ConfigMap","data":{"a ...)',
        ),
        ("POST", b"[1,]", "invalid character ']' looking for beginning of value (5b312c5d)"),
        ("POST", b"{}{", "invalid character '{' after top-level value ({}{)"),
        ("PUT", b"nul", "invalid character ' ' in literal null (expecting 'l') (6e756c)"),
        ("PUT", b'{"metadata":{"name":"a"', 'unexpected end of JSON input ({"metadata":{"name":"a")'),
    ],
)
async def test_bodies_that_are_not_json(server: Server, method: str, body: bytes, said: str) -> None:
    await server.namespace(NAMESPACE, certificate=False)
    answer = await asked(server, method, CONFIGMAPS + ("/a" if method == "PUT" else ""), body)
    head = "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind"
    assert (answer.code, answer.reason, answer.message) == (400, "BadRequest", f"{head}; json parse error: {said}")


@pytest.mark.parametrize(
    ("token", "said"),
    [
        ("abc!", "illegal base64 data at input byte 3"),
        ("abcde", "illegal base64 data at input byte 4"),
        ("e30=", "illegal base64 data at input byte 3"),
        ("bm90", "invalid character 'o' in literal null (expecting 'u')"),
        ("eyJh", "unexpected end of JSON input"),
        ("e30", 'server does not recognize this encoded version ""'),
    ],
)
async def test_continue_tokens_that_no_server_wrote(server: Server, token: str, said: str) -> None:
    await server.namespace(NAMESPACE, certificate=False)
    answer = await asked(server, "GET", f"{CONFIGMAPS}?limit=1&continue={token}")
    assert answer.message == f"invalid continue token: continue key is not valid: {said}"


def _deployment(**spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template, **spec},
    }


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"replicas": 2**31}, "number 2147483648 into Go struct field DeploymentSpec.spec.replicas of type int32"),
        (
            {"replicas": -(2**31) - 1},
            "number -2147483649 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            {"minReadySeconds": 10**12},
            "number 1000000000000 into Go struct field DeploymentSpec.spec.minReadySeconds of type int32",
        ),
        (
            {"revisionHistoryLimit": 1.5},
            "number 1.5 into Go struct field DeploymentSpec.spec.revisionHistoryLimit of type int32",
        ),
        ({"replicas": "1"}, "string into Go struct field DeploymentSpec.spec.replicas of type int32"),
        ({"replicas": True}, "bool into Go struct field DeploymentSpec.spec.replicas of type int32"),
        ({"paused": 1}, "number into Go struct field DeploymentSpec.spec.paused of type bool"),
        (
            {"template": {"spec": {"terminationGracePeriodSeconds": 2**63}}},
            (
                f"number {2**63} into Go struct field "
                "PodSpec.spec.template.spec.terminationGracePeriodSeconds of type int64"
            ),
        ),
        (
            {"template": {"spec": {"priority": 2**31}}},
            "number 2147483648 into Go struct field PodSpec.spec.template.spec.priority of type int32",
        ),
    ],
)
async def test_numbers_that_do_not_fit(server: Server, spec: dict[str, Any], said: str) -> None:
    await server.namespace(NAMESPACE, certificate=False)
    answer = await asked(server, "POST", DEPLOYMENTS, _deployment(**spec))
    head = 'Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal'
    assert (answer.code, answer.message) == (400, f"{head} {said}")


@pytest.mark.parametrize(
    "spec",
    [
        {"replicas": 2**31 - 1},
        {
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": 2**63 - 1},
            }
        },
    ],
)
async def test_the_largest_numbers_that_fit(server: Server, spec: dict[str, Any]) -> None:
    await server.namespace(NAMESPACE, certificate=False)
    answer = await asked(server, "POST", f"{DEPLOYMENTS}?dryRun=All", _deployment(**spec))
    assert answer.code == 201, answer


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (OPERATIONS, [{"op": "replace", "path": "/spec/replicas", "value": 99999999999}]),
        (MERGE, {"spec": {"replicas": 99999999999}}),
        ("application/strategic-merge-patch+json", {"spec": {"replicas": 99999999999}}),
    ],
)
async def test_patched_numbers_that_do_not_fit(server: Server, kind: str, body: Any) -> None:
    await server.namespace(NAMESPACE, certificate=False)
    assert (await asked(server, "POST", DEPLOYMENTS, _deployment())).code == 201
    answer = await asked(server, "PATCH", f"{DEPLOYMENTS}/d", body, content_type=kind)
    assert answer.code in (400, 422), answer
    assert (await asked(server, "GET", f"{DEPLOYMENTS}/d")).body["spec"]["replicas"] == 1
