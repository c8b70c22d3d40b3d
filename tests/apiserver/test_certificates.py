"""certificates.k8s.io: what may be asked, who may answer, and what an answer may change."""

import base64
from typing import Any

import pytest

from podfit.net.wire import Identity
from support.access import JANE, grant, rule, send
from support.requests import REQUESTS, body, certificate, request
from support.server import ADMIN, Server

MINE = "example.com/mine"
PEM = request("jane")
YES = {"type": "Approved", "status": "True", "reason": "x"}
NO = {"type": "Denied", "status": "True"}


async def made(server: Server, who: Identity | None = None, **spec: Any) -> Any:
    code, found = await send(server, "POST", REQUESTS, body("r", PEM, MINE, **spec), who=who or ADMIN)
    assert code == 201, found
    return found


def condition(*conditions: dict[str, str], certificate: str = "") -> dict[str, Any]:
    return {"status": {"conditions": list(conditions), **({"certificate": certificate} if certificate else {})}}


async def put(server: Server, door: str, change: dict[str, Any], who: Identity | None = None) -> tuple[int, Any]:
    _, found = await send(server, "GET", f"{REQUESTS}/r")
    return await send(server, "PUT", f"{REQUESTS}/r/{door}", found | change, who=who or ADMIN)


async def test_who_asks_is_who_sends_and_nothing_of_the_spec_changes_later(server: Server) -> None:
    await grant(server, rule("create update", "certificatesigningrequests", "certificates.k8s.io"), kind="ClusterRole")
    who = Identity("jane", ("dev",), "u", {"a": ("b",)})
    found = await made(server, who, username="root", groups=["system:masters"])
    spec = found["spec"]
    assert (spec["username"], spec["uid"], spec["extra"]) == ("jane", "u", {"a": ["b"]})
    assert spec["groups"] == ["dev", "system:authenticated"]
    assert found["status"] == {}
    changed = found | {"spec": spec | {"username": "root"}, "status": {"conditions": [YES]}}
    changed["metadata"] = changed["metadata"] | {"labels": {"a": "b"}}
    code, after = await send(server, "PUT", f"{REQUESTS}/r", changed)
    assert (code, after["spec"], after["status"], after["metadata"]["labels"]) == (200, spec, {}, {"a": "b"})


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"request": "aGk="}, 'spec.request: Invalid value: "aGk=": PEM block type must be CERTIFICATE REQUEST'),
        ({"usages": []}, "spec.usages: Required value"),
        ({"usages": ["client auth", "dance"]}, 'spec.usages[1]: Unsupported value: "dance"'),
        ({"usages": ["any", "any"]}, 'spec.usages[1]: Duplicate value: "any"'),
        ({"signerName": ""}, "spec.signerName: Required value"),
        ({"signerName": "mine"}, "must be a fully qualified domain and path of the form"),
        ({"signerName": "com/mine"}, "should be a domain with at least two segments separated by dots"),
        ({"signerName": "a_.b/c"}, 'spec.signerName: Invalid value: "a_.b": validating label "a_"'),
        ({"signerName": "kubernetes.io/legacy-unknown"}, "the legacy signerName is not allowed via this API version"),
        ({"expirationSeconds": 599}, "may not specify a duration less than 600 seconds (10 minutes)"),
    ],
)
async def test_what_may_be_asked(server: Server, spec: dict[str, Any], message: str) -> None:
    asked = body("r", PEM, MINE)
    code, found = await send(server, "POST", REQUESTS, asked | {"spec": asked["spec"] | spec})
    assert code == 422
    assert message in found["message"]


async def test_a_request_that_its_key_did_not_sign_is_refused(server: Server) -> None:
    der = bytearray(base64.b64decode(b"".join(PEM.splitlines()[1:-1])))
    der[-1] ^= 1
    text = base64.encodebytes(bytes(der)).decode()
    forged = f"-----BEGIN CERTIFICATE REQUEST-----\n{text}-----END CERTIFICATE REQUEST-----\n".encode()
    code, found = await send(server, "POST", REQUESTS, body("r", forged, MINE))
    assert code == 422
    assert "x509: ECDSA verification failure" in found["message"]


async def test_nobody_asks_for_all_rights(server: Server) -> None:
    asked = body("r", request("me", "system:masters"), "kubernetes.io/kube-apiserver-client")
    code, found = await send(server, "POST", REQUESTS, asked)
    text = "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"
    assert (code, text in found["message"]) == (403, True)


async def test_a_node_asks_for_itself(server: Server) -> None:
    node = Identity("system:node:n1", ("system:nodes",))
    for name, code in (("n1", 201), ("n2", 403)):
        asked = body(name, request(f"system:node:{name}", "system:nodes"))
        assert (await send(server, "POST", REQUESTS, asked, who=node))[0] == code


async def test_conditions_come_through_their_own_door_and_stay(server: Server) -> None:
    await made(server)
    code, found = await put(server, "status", condition(YES))
    assert (code, "updates may not add a condition of type" in found["message"]) == (422, True)
    code, found = await put(server, "approval", condition(YES, {"type": "Denied", "status": "False"}))
    assert code == 422
    assert "mutually exclusive" in found["message"]
    assert 'status.conditions[1].status: Unsupported value: "False": supported values: "True"' in found["message"]
    code, found = await put(server, "approval", condition(YES, certificate=base64.b64encode(b"x").decode()))
    approved = found["status"]["conditions"][0]
    assert (code, "certificate" in found["status"], bool(approved["lastUpdateTime"])) == (200, False, True)
    code, found = await put(server, "approval", condition(YES, NO))
    assert (code, "mutually exclusive" in found["message"]) == (422, True)
    code, found = await put(server, "approval", condition())
    assert (code, "updates may not remove a condition" in found["message"]) == (422, True)
    other = approved | {"message": "changed"}
    code, found = await put(server, "status", condition(other))
    assert (code, found["status"]["conditions"]) == (200, [approved])


async def test_a_certificate_is_one_and_is_written_once(server: Server) -> None:
    await made(server)
    code, found = await put(server, "status", condition(certificate=base64.b64encode(b"x").decode()))
    assert (code, "must contain at least one CERTIFICATE PEM block" in found["message"]) == (422, True)
    pem = base64.b64encode(PEM).decode()
    code, found = await put(server, "status", condition(certificate=pem))
    assert (code, "only CERTIFICATE PEM blocks are allowed" in found["message"]) == (422, True)


@pytest.mark.parametrize("signers", [MINE, "example.com/*"])
@pytest.mark.parametrize(("door", "verb"), [("approval", "approve"), ("status", "sign")])
async def test_the_signer_is_a_right_of_its_own(server: Server, door: str, verb: str, signers: str) -> None:
    group = "certificates.k8s.io"
    await made(server)
    change = condition(YES) if door == "approval" else condition(certificate=base64.b64encode(certificate()).decode())
    may_write = rule("update", f"certificatesigningrequests/{door}", group)
    await grant(server, may_write, kind="ClusterRole")
    code, found = await put(server, door, change, JANE)
    assert (code, f'not permitted to {verb} requests with signerName "{MINE}"' in found["message"]) == (403, True)
    rules = [may_write, rule(verb, "signers", group, resourceNames=[signers])]
    where = "/apis/rbac.authorization.k8s.io/v1/clusterroles/r"
    assert (await send(server, "PUT", where, {"metadata": {"name": "r"}, "rules": rules}))[0] == 200
    assert (await put(server, door, change, JANE))[0] == 200
    if door == "status":
        again = base64.b64encode(certificate() + b"\n").decode()
        code, found = await put(server, door, condition(certificate=again), JANE)
        assert (code, "updates may not modify existing certificate content" in found["message"]) == (422, True)


async def test_requests_are_selected_by_their_signer(server: Server) -> None:
    await made(server)
    for signer, count in ((MINE, 1), ("example.com/other", 0)):
        _, found = await send(server, "GET", f"{REQUESTS}?fieldSelector=spec.signerName={signer}")
        assert len(found["items"]) == count
