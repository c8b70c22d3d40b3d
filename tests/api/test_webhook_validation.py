"""What a webhook configuration may not say."""

from typing import Any

import pytest

from podfit.api.admissionregistration.v1.types import MutatingWebhookConfiguration
from podfit.api.defaults import apply_defaults
from podfit.api.meta.codec import convert
from podfit.api.validation import validate_create

RULE = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
GOOD = {
    "name": "a.b.c",
    "clientConfig": {"url": "https://h/p"},
    "rules": [RULE],
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
}
OPERATIONS = '"*", "CONNECT", "CREATE", "DELETE", "UPDATE"'
OTHER = "present, must not specify other"
QUALIFIED = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL_1035 = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
AUTHORIZER = "authorizer.group('').resource('pods').check('get')"
HTTPS = "desired format: https://host[/path]"


def problems(*webhooks: dict[str, Any]) -> list[str]:
    document = {"metadata": {"name": "x"}, "webhooks": list(webhooks)}
    made = apply_defaults(convert(document, MutatingWebhookConfiguration))
    return [str(error).removeprefix("webhooks[0].") for error in validate_create(made)]


def uncompiled(expression: str) -> str:
    return f'matchConditions[0].expression: Invalid value: "{expression}": compilation failed: '


def ruled(**fields: Any) -> dict[str, Any]:
    return {"rules": [RULE | fields]}


def served(path: str) -> dict[str, Any]:
    return {"clientConfig": {"service": {"namespace": "n", "name": "s", "path": path}}}


def test_a_good_one_passes() -> None:
    service = {"service": {"namespace": "n", "name": "s", "path": "/p"}}
    assert problems(GOOD, GOOD | {"name": "d.e.f", "clientConfig": service}) == []
    empty = {"service": {"namespace": "n", "name": "s", "path": ""}}
    assert problems(GOOD | {"clientConfig": empty}) == [], "an empty path is as none"


@pytest.mark.parametrize(
    ("wrong", "texts"),
    [
        ({"name": ""}, ["name: Required value"]),
        (
            {"name": "a.b"},
            ['name: Invalid value: "a.b": should be a domain with at least three segments separated by dots'],
        ),
        ({"sideEffects": None}, ["sideEffects: Required value: must specify one of None, NoneOnDryRun"]),
        ({"sideEffects": "Some"}, ['sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"']),
        ({"failurePolicy": "Maybe"}, ['failurePolicy: Unsupported value: "Maybe": supported values: "Fail", "Ignore"']),
        ({"matchPolicy": "Near"}, ['matchPolicy: Unsupported value: "Near": supported values: "Equivalent", "Exact"']),
        (
            {"reinvocationPolicy": "x"},
            ['reinvocationPolicy: Unsupported value: "x": supported values: "IfNeeded", "Never"'],
        ),
        (
            {"timeoutSeconds": 31},
            ["timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds"],
        ),
        ({"admissionReviewVersions": []}, ["admissionReviewVersions: Required value: must specify one of v1, v1beta1"]),
        (
            {"admissionReviewVersions": ["v7"]},
            ['admissionReviewVersions: Invalid value: ["v7"]: must include at least one of v1, v1beta1'],
        ),
        ({"clientConfig": {}}, ["clientConfig: Required value: exactly one of url or service is required"]),
        (
            {"clientConfig": {"url": "http://h/"}},
            [f"clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; {HTTPS}"],
        ),
        (
            {"clientConfig": {"url": "https://"}},
            [f'clientConfig.url: Invalid value: "": host must be specified; {HTTPS}'],
        ),
        (
            {"clientConfig": {"url": "https://u@h/?q=1#f"}},
            [
                'clientConfig.url: Invalid value: "u": user information is not permitted in the URL',
                'clientConfig.url: Invalid value: "f": fragments are not permitted in the URL',
                'clientConfig.url: Invalid value: "q=1": query parameters are not permitted in the URL',
            ],
        ),
        (
            {"clientConfig": {"service": {"path": "p", "port": 0}}},
            [
                "clientConfig.service.name: Required value",
                "clientConfig.service.namespace: Required value",
                (
                    "clientConfig.service.port: Invalid value: 0: port is not valid: "
                    "must be between 1 and 65535, inclusive"
                ),
                "clientConfig.service.path: Invalid value: \"p\": must start with a '/'",
                'clientConfig.service.path: Invalid value: "p": segment[0] may not be empty',
            ],
        ),
        (served("//"), ['clientConfig.service.path: Invalid value: "//": segment[0] may not be empty']),
        (served("/"), []),
        (served("/a/b/"), []),
        (served("/a//b"), ['clientConfig.service.path: Invalid value: "/a//b": segment[1] may not be empty']),
        ({"name": "A.b..c"}, [f'name: Invalid value: "A.b..c": {SUBDOMAIN}']),
        (
            {"admissionReviewVersions": ["v2", "v1", "v1", "1"]},
            [
                'admissionReviewVersions[2]: Invalid value: "v1": duplicate version',
                f'admissionReviewVersions[3]: Invalid value: "1": {LABEL_1035}',
            ],
        ),
        (
            ruled(operations=["READ"]),
            [f'rules[0].operations[0]: Unsupported value: "READ": supported values: {OPERATIONS}'],
        ),
        (
            ruled(operations=["*", "CREATE"]),
            [f'rules[0].operations: Invalid value: ["*","CREATE"]: if \'*\' is {OTHER} operations'],
        ),
        (ruled(resources=[]), ["rules[0].resources: Required value"]),
        (
            ruled(apiGroups=["*", "a"], apiVersions=["", "*"]),
            [
                f'rules[0].apiGroups: Invalid value: ["*","a"]: if \'*\' is {OTHER} API groups',
                f'rules[0].apiVersions: Invalid value: ["","*"]: if \'*\' is {OTHER} API versions',
                "rules[0].apiVersions[0]: Required value",
            ],
        ),
        (
            ruled(apiGroups=[], apiVersions=[]),
            ["rules[0].apiGroups: Required value", "rules[0].apiVersions: Required value"],
        ),
        (
            ruled(resources=["pods/*", "pods/log", "", "*/scale", "a/scale"]),
            [
                "rules[0].resources[1]: Invalid value: \"pods/log\": if 'pods/*' is present, must not specify pods/log",
                "rules[0].resources[2]: Required value",
                "rules[0].resources[4]: Invalid value: \"a/scale\": if '*/scale' is present, must not specify a/scale",
            ],
        ),
        (ruled(resources=["pods/log", "pods/*"]), []),
        (
            ruled(resources=["*", "pods"]),
            [f'rules[0].resources: Invalid value: ["*","pods"]: if \'*\' is {OTHER} resources without subresources'],
        ),
        (ruled(resources=["pods", "*"]), []),
        (
            ruled(resources=["*/*", "pods"]),
            [f'rules[0].resources: Invalid value: ["*/*","pods"]: if \'*/*\' is {OTHER} resources'],
        ),
        (
            ruled(scope="Here"),
            ['rules[0].scope: Unsupported value: "Here": supported values: "*", "Cluster", "Namespaced"'],
        ),
        (
            {"matchConditions": [{"name": "x", "expression": "x == 1"}, {"name": "x", "expression": " "}]},
            [
                (
                    f"{uncompiled('x == 1')}ERROR: <input>:1:1: undeclared reference to 'x' (in container '')"
                    "\n | x == 1\n | ^"
                ),
                "matchConditions[1].expression: Required value",
                'matchConditions[1].name: Duplicate value: "x"',
            ],
        ),
        (
            {"matchConditions": [{"expression": f"{AUTHORIZER}.allowed()"}]},
            [
                f"{uncompiled(f'{AUTHORIZER}.allowed()')}".removesuffix("compilation failed: ")
                + "this server has no authorizer for conditions",
                "matchConditions[0].name: Required value",
            ],
        ),
        (
            {"matchConditions": [{"name": "a b", "expression": "request.user == 1"}]},
            [
                (
                    f"{uncompiled('request.user == 1')}ERROR: <input>:1:8: undefined field 'user'"
                    "\n | request.user == 1\n | .......^"
                ),
                f'matchConditions[0].name: Invalid value: "a b": {QUALIFIED}',
            ],
        ),
        (
            {"matchConditions": [{"name": f"n{number}", "expression": "true"} for number in range(65)]},
            ["matchConditions: Too many: 65: must have at most 64 items"],
        ),
    ],
)
def test_faults(wrong: dict[str, Any], texts: list[str]) -> None:
    assert problems(GOOD | wrong) == texts


def test_names_are_unique() -> None:
    assert problems(GOOD, GOOD) == ['webhooks[1].name: Duplicate value: "a.b.c"']
