"""Recorded requests sent to a server of ours, and answers compared with what was recorded.

A case is `{id, setup: [request…], request, expect}`. Text in braces stands for what differs between runs; `save` in a
step binds a member of its answer to a name for later steps.
"""

import datetime
import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any
from urllib.parse import parse_qsl

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from podfit.apiserver.request.request_info import request_info_of
from podfit.net.guard import answer
from podfit.net.wire import Request, Response
from support.golden import Case
from support.server import Server, document

NAMESPACE = "golden"
RECORDER = "bars/v1.36"
"""Who made the recorded namespaces, by their managed fields."""
ADMIN_AGENT = "golden/v1.36 (linux/amd64)"
DEFINITIONS = "/customresourcedefinitions"
_PLACEHOLDER = re.compile(r"\{([a-zA-Z0-9]+)\}")
_DIGEST = re.compile(r"X509SHA256=[0-9a-f]{64}")
_AGE = re.compile(r"^\d+s$")
_NODE_PORT = re.compile(r":3\d{4}/")
CONTROLLER_MANAGER = "kube-controller-manager"
_REVISION = "deployment.kubernetes.io/revision"
_OPENSHIFT_RULE = {"verbs": ["get"], "nonResourceURLs": ["/.well-known", "/.well-known/*"]}


def served(case: Case) -> bool:
    """Whether the case is about resources that this server has, or is given by a definition in the case's setup."""
    steps = case.get("setup") or []
    groups = {_group(step) for step in steps if step["path"].endswith(DEFINITIONS)}
    return all(_known(step, groups) for step in (*steps, case["request"]))


def _group(step: dict[str, Any]) -> str:
    return str(step["body"]["spec"].get("group"))


def _known(step: dict[str, Any], groups: set[str]) -> bool:
    request_info = request_info_of(Request(step["method"], step["path"].partition("?")[0], {}, {}, b""))
    return request_info is None or request_info.info is not None or request_info.group in groups


class Replay:
    """One case on one server, in a namespace of its own."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._names = {"ns": NAMESPACE}

    async def prepare(self, case: Case, *, certificate: bool = False) -> None:
        """`certificate`: with the config map of the cluster's authority, which most recordings were made without."""
        await self.send(
            {"method": "POST", "path": "/api/v1/namespaces", "ua": RECORDER, "body": {"metadata": {"name": NAMESPACE}}}
        )
        await self._server.account(NAMESPACE, certificate=certificate)
        if "{jwt}" in str(case.get("request")):
            self._names["jwt"] = await self._token()
        for step in case.get("setup") or []:
            done = await self.send(step)
            body = await done.read()
            if done.status < 300:
                self._save(step, body)

    async def send(self, step: dict[str, Any], *, anonymous: bool = False) -> Response:
        body = _repeated(self.filled(step.get("body")))
        data = b"" if body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        data = data.replace(b"@@", b"a" * step.get("bodyRepeat", 2)) if "bodyRepeat" in step else data
        headers = {name.lower(): self.filled(value) for name, value in (step.get("headers") or {}).items()}
        headers.setdefault("user-agent", step.get("ua") or ADMIN_AGENT)
        sent = {"accept": step.get("accept"), "content-type": step.get("contentType")}
        headers |= {name: value for name, value in sent.items() if value}
        path, _, query = self.filled(step["path"]).partition("?")
        query = "&".join(filter(None, (query, self.filled(step.get("query") or ""))))
        parameters: dict[str, tuple[str, ...]] = {}
        for name, value in parse_qsl(query, keep_blank_values=True):
            parameters[name] = (*parameters.get(name, ()), value)
        shown = None if anonymous or "authorization" in headers else admin_certificate()
        request = Request(step["method"], path, parameters, headers, data, peer_certificate=shown)
        return await answer(self._server.api.handler, request)

    def filled(self, value: Any) -> Any:
        if isinstance(value, str):
            return _PLACEHOLDER.sub(lambda match: self._names.get(match[1], match[0]), value)
        if isinstance(value, dict):
            return {self.filled(name): self.filled(inner) for name, inner in value.items()}
        return [self.filled(inner) for inner in value] if isinstance(value, list) else value

    async def _token(self) -> str:
        path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default/token"
        body = b'{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1"}'
        made = await self._server.ask("POST", path, body)
        token: str = document(await made.read())["status"]["token"]
        return token

    def expected(self, case: Case) -> dict[str, Any]:
        """What was recorded, in this namespace; other names in braces stand for any text."""
        text = json.dumps(case["expect"]).replace("{ns}", NAMESPACE).replace("{ip}:16443", "")
        text = _DIGEST.sub("X509SHA256={hash}", text)
        found: dict[str, Any] = json.loads(text)
        return found

    def _save(self, step: dict[str, Any], body: bytes) -> None:
        for name, path in (step.get("save") or {}).items():
            found: Any = document(body)
            for part in path.split("."):
                found = found.get(part, "")
            self._names[name] = found


def _repeated(body: Any) -> Any:
    """`{"$repeat": n, "item": …}` is a list of that many."""
    return [body["item"]] * body["$repeat"] if isinstance(body, dict) and "$repeat" in body else body


@cache
def admin_certificate() -> bytes:
    """What the recorded administrator showed: `admin` of `system:masters`."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name(
        [
            x509.NameAttribute(NameOID.COMMON_NAME, "admin"),
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:masters"),
        ]
    )
    day = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), 7, day, day + datetime.timedelta(days=1))
    return made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


def projected(expected: Any, got: Any) -> Any:
    """The part of an answer that was recorded, where that was names, members or one half only."""
    if not isinstance(expected, dict) or not isinstance(got, dict):
        return got
    if expected.keys() == {"items"} and all("name" in item for item in expected["items"]):
        return {"items": [_flat(item) for item in got["items"]]}
    if expected.keys() == {"names"}:
        return {"names": [item["metadata"]["name"] for item in got["items"]]}
    if expected.keys() == {"keys"}:
        return {"keys": sorted(got)}
    if "kind" not in expected and isinstance(got.get("status"), dict) and got["kind"] != "Status":
        return got["status"]
    if "kind" in expected and "apiVersion" not in expected and "apiVersion" in got:
        return _within(expected, got)
    return got


def _flat(item: dict[str, Any]) -> dict[str, Any]:
    """An object of a list as it was recorded: some of its metadata beside what it says."""
    meta = {
        name: item["metadata"][name]
        for name in ("name", "namespace", "labels", "annotations")
        if name in item["metadata"]
    }
    said = ("rules", "aggregationRule", "roleRef", "subjects")
    return meta | {name: item[name] for name in said if name in item}


def _within(expected: Any, got: Any) -> Any:
    if not isinstance(expected, dict) or not isinstance(got, dict):
        return got
    return {name: _within(expected[name], value) for name, value in got.items() if name in expected}


def differences(expected: Any, got: Any, path: str = "") -> Iterator[str]:  # noqa: C901  (a list of JSON's types)
    """Where an answer is not the recorded one; a recorded `{name}` stands for any text."""
    if isinstance(expected, dict) and isinstance(got, dict):
        for name in {**expected, **got}:
            if name not in got:
                yield f"{path}.{name}: missing, not {expected[name]!r}"
            elif name not in expected:
                yield f"{path}.{name}: {got[name]!r} was not there"
            else:
                yield from differences(expected[name], got[name], f"{path}.{name}")
    elif isinstance(expected, list) and isinstance(got, list):
        if len(expected) != len(got):
            yield f"{path}: {len(got)} items, not {len(expected)}: {got!r}"
        for index, (one, other) in enumerate(zip(expected, got, strict=False)):
            yield from differences(one, other, f"{path}[{index}]")
    elif isinstance(expected, str) and isinstance(got, str):
        if not _pattern(expected).fullmatch(got):
            yield f"{path}: {got!r}, not {expected!r}"
    elif expected == "{nodePort}" and type(got) is int:
        return
    elif expected != got or type(expected) is not type(got):
        yield f"{path}: {got!r}, not {expected!r}"


def _pattern(text: str) -> re.Pattern[str]:
    parts = _PLACEHOLDER.split(text)
    return re.compile("".join(".*?" if index % 2 else re.escape(part) for index, part in enumerate(parts)), re.DOTALL)


def comparable(body: Any) -> Any:
    """An answer with each cause named once."""
    if isinstance(body, list):
        return [comparable(item) for item in body]
    if not isinstance(body, dict):
        return body
    kept = {name: comparable(value) for name, value in body.items() if name != "description"}
    if isinstance(body.get("cells"), list):
        kept["cells"] = [_cell(cell) for cell in body["cells"]]
    if "names" in kept:
        kept["names"] = [name for name in kept["names"] if not name.startswith("openshift-")]
    if isinstance(body.get("items"), list):
        kept["items"] = [item for item in kept["items"] if not _of_one_side(item)]
    for name in ("resourceRules", "nonResourceRules"):  # in no order that means something
        if name in kept:
            kept[name] = sorted((rule for rule in kept[name] if rule != _OPENSHIFT_RULE), key=json.dumps)
    if isinstance(body.get("causes"), list):
        kept["causes"] = [cause for index, cause in enumerate(body["causes"]) if cause not in body["causes"][:index]]
    return kept


def _cell(cell: Any) -> Any:
    return _NODE_PORT.sub(":30000/", _AGE.sub("0s", cell)) if isinstance(cell, str) else cell


def without_controllers(body: Any) -> Any:
    """An answer without what the controller manager of the recorded cluster had written by then."""
    if isinstance(body, list):
        return [without_controllers(item) for item in body]
    if not isinstance(body, dict):
        return body
    kept = {name: without_controllers(value) for name, value in body.items() if name not in ("status", "metadata")}
    if isinstance(body.get("metadata"), dict):
        kept["metadata"] = _own(body["metadata"])
    return kept


def _own(metadata: dict[str, Any]) -> dict[str, Any]:
    kept = dict(metadata)
    annotations = {name: text for name, text in metadata.get("annotations", {}).items() if name != _REVISION}
    kept["annotations"] = annotations
    entries = [field for field in metadata.get("managedFields", []) if field["manager"] != CONTROLLER_MANAGER]
    kept["managedFields"] = [entry | {"fieldsV1": _owned(entry["fieldsV1"])} for entry in entries]
    return kept


def _owned(fields: dict[str, Any]) -> dict[str, Any]:
    """Who was first to write an annotation owns that there are any."""
    meta = fields.get("f:metadata", {})
    annotations = {name: inner for name, inner in meta.get("f:annotations", {}).items() if name != "."}
    return fields | ({"f:metadata": meta | {"f:annotations": annotations}} if "f:annotations" in meta else {})


def _of_one_side(item: Any) -> bool:
    """Whether it is there only because of who recorded, or only because of what we are."""
    name = str(item.get("name", "")) if isinstance(item, dict) else ""
    return "openshift" in name or name.startswith("system:podfit:")
