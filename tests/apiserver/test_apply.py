"""Server-side apply beyond what was recorded: how documents merge, who owns what, and what is refused."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from podfit.api.core.v1.config.types import ConfigMap
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert, to_dict
from podfit.api.meta.v1.types import ObjectMeta
from podfit.api.rbac.v1.types import PolicyRule, Role, RoleBinding, RoleRef, Subject
from podfit.api.registry import info_for
from podfit.apiserver.registry.apply.apply import Application, Applied
from podfit.apiserver.registry.apply.sets import Tree, common, paths, union, well_formed, without
from podfit.core.errors import ApiError
from podfit.net.wire import Identity
from support.server import Server, document

pytestmark = pytest.mark.row("R-003")

CONTAINER = 'k:{"name":"c"}'
NOW = "2026-01-01T00:00:00Z"
APPLY = "application/apply-patch+yaml"


def applied(live: Applied | None, who: str, *, force: bool = False, kind: type = Pod, **members: Any) -> Applied:
    """What `who` makes of a live object by applying these members of it."""
    info = info_for(kind)
    given = {"apiVersion": "v1", "kind": info.kind, "metadata": {"name": "p"}, **members}
    one = Application(
        document=given,
        manager=who,
        subresource="",
        reset={"f:status": {}} if info.has_status else {},
        force=force,
        now=NOW,
    )
    return one.to(info, live.document if live else None, live.entries if live else ())


def stored(made: Applied) -> Applied:
    """As the server keeps it: what is empty is not there."""
    return Applied(document=to_dict(convert(made.document, ConfigMap)), entries=made.entries)


def owned(made: Applied) -> dict[str, Any]:
    return {entry.manager: entry.fields_v1 for entry in made.entries}


def containers(made: Applied) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = made.document["spec"]["containers"]
    return found


def container(**members: Any) -> dict[str, Any]:
    return {"containers": [{"name": "c", **members}]}


def test_lists_of_items_with_keys_merge_item_by_item() -> None:
    first = applied(None, "a", spec=container(env=[{"name": "A", "value": "1"}, {"name": "Z", "value": "1"}]))
    both = applied(first, "b", spec=container(env=[{"name": "B", "value": "2"}, {"name": "Z", "value": "1"}]))
    assert [variable["name"] for variable in containers(both)[0]["env"]] == ["A", "B", "Z"]
    rest = applied(both, "a", spec=container(env=[]))
    assert [variable["name"] for variable in containers(rest)[0]["env"]] == ["B", "Z"]
    assert owned(rest)["a"] == {"f:spec": {"f:containers": {CONTAINER: {".": {}, "f:name": {}}}}}


def test_a_missing_key_has_its_default() -> None:
    first = applied(None, "a", spec=container(ports=[{"containerPort": 80}]))
    both = applied(first, "b", spec=container(ports=[{"containerPort": 80, "protocol": "TCP", "name": "web"}]))
    assert containers(both)[0]["ports"] == [{"containerPort": 80, "protocol": "TCP", "name": "web"}]
    other = applied(both, "b", spec=container(ports=[{"containerPort": 80, "protocol": "UDP"}]))
    assert len(containers(other)[0]["ports"]) == 2


def test_lists_without_keys_and_atomic_structs_are_one_field() -> None:
    spec = container(command=["a", "b"], env=[{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}])
    first = applied(None, "a", spec=spec)
    env = owned(first)["a"]["f:spec"]["f:containers"][CONTAINER]["f:env"]
    assert env == {'k:{"name":"N"}': {".": {}, "f:name": {}, "f:valueFrom": {"f:fieldRef": {}}}}
    with pytest.raises(ApiError) as refused:
        applied(first, "b", spec=container(command=["a"]))
    field = '.spec.containers[name="c"].command'
    cause = {"reason": "FieldManagerConflict", "message": 'conflict with "a"', "field": field}
    assert refused.value.details["causes"] == [cause]
    assert containers(applied(first, "b", force=True, spec=container(command=["a"])))[0]["command"] == ["a"]


def test_sets_are_united_and_left_item_by_item() -> None:
    meta = {"name": "p", "finalizers": ["a.b/1", "a.b/2"]}
    first = applied(None, "a", metadata=meta)
    both = applied(first, "b", metadata={"name": "p", "finalizers": ["a.b/2", "a.b/3"]})
    assert both.document["metadata"]["finalizers"] == ["a.b/1", "a.b/2", "a.b/3"]
    left = applied(both, "a", metadata={"name": "p"})
    assert left.document["metadata"]["finalizers"] == ["a.b/2", "a.b/3"]
    assert list(owned(left)) == ["b"]


def test_the_same_value_is_shared_and_outlives_one_of_its_owners() -> None:
    first = applied(None, "a", kind=ConfigMap, data={"k": "1"})
    both = applied(first, "b", kind=ConfigMap, data={"k": "1"})
    assert owned(both) == {"a": {"f:data": {"f:k": {}}}, "b": {"f:data": {"f:k": {}}}}
    assert [entry.time for entry in both.entries if entry.manager == "b"] == [None]  # it changed nothing
    left = applied(both, "a", kind=ConfigMap)
    assert left.document["data"] == {"k": "1"}
    assert "data" not in applied(left, "b", kind=ConfigMap).document


def test_force_takes_fields_away_from_their_owner() -> None:
    first = applied(None, "a", kind=ConfigMap, data={"k": "1", "l": "1"})
    taken = applied(first, "b", kind=ConfigMap, force=True, data={"k": "2"})
    assert owned(taken) == {"a": {"f:data": {"f:l": {}}}, "b": {"f:data": {"f:k": {}}}}
    with pytest.raises(ApiError, match=r'conflict with "b": \.data\.k'):
        applied(taken, "a", kind=ConfigMap, data={"k": "3"})


def test_a_struct_that_nobody_owns_any_more_goes_with_what_was_defaulted_in_it() -> None:
    security = {"runAsUser": 1}
    first = applied(None, "a", spec=container(image="i") | {"securityContext": security})
    live = {**first.document, "spec": {**first.document["spec"], "securityContext": {**security, "runAsGroup": 2}}}
    grown = Applied(document=live, entries=first.entries)
    gone = applied(grown, "a", spec=container(image="i"))
    assert "securityContext" not in gone.document["spec"]
    kept = applied(grown, "a", spec=container(image="i") | {"securityContext": {}})
    assert kept.document["spec"]["securityContext"] == {"runAsGroup": 2}


def test_nulls_are_owned_and_not_there() -> None:
    made = applied(None, "a", spec=container(image=None, ports=None), metadata={"name": "p", "labels": None})
    assert containers(made) == [{"name": "c"}]
    mine = owned(made)["a"]["f:spec"]["f:containers"][CONTAINER]
    assert mine == {".": {}, "f:name": {}, "f:image": {}, "f:ports": {}}
    assert applied(None, "a", kind=ConfigMap, data={"k": None}).document["data"] == {"k": ""}


def test_a_null_changes_what_another_owns() -> None:
    first = applied(None, "a", spec=container(image="i"))
    with pytest.raises(ApiError, match=r"containers\[name=\"c\"\].image"):
        applied(first, "b", spec=container(image=None))


def test_items_that_claim_the_same_keys_are_kept_until_one_is_applied() -> None:
    twice = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]
    live = applied(None, "a", spec=container())
    live.document["spec"]["containers"][0]["env"] = twice
    kept = applied(live, "b", spec=container(env=[{"name": "B"}]))
    assert containers(kept)[0]["env"] == [*twice, {"name": "B"}]
    assert containers(applied(live, "b", spec=container(env=[{"name": "A", "value": "3"}])))[0]["env"] == [
        {"name": "A", "value": "3"}
    ]


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ({"bogus": 1}, ".bogus: field not declared in schema"),
        (
            {"spec": {"containers": [{"name": "c", "imag": "x"}]}},
            '.spec.containers[name="c"].imag: field not declared in schema',
        ),
        (
            {"spec": {"containers": [{"name": "c"}, {"name": "c"}]}},
            '.spec.containers: duplicate entries for key [name="c"]',
        ),
        (
            {"spec": container(ports=[{"containerPort": 1}, {"containerPort": 1, "protocol": "TCP"}])},
            'ports: duplicate entries for key [containerPort=1,protocol="TCP"]',
        ),
        ({"metadata": {"finalizers": ["a", "a"]}}, '.metadata.finalizers: duplicate entries for key [="a"]'),
        ({"spec": {"containers": {}}}, ".spec.containers: expected list, got &{map[]}"),
        (
            {"spec": {"containers": ["c"]}},
            "containers: element 0: associative list with keys may not have non-map elements",
        ),
        (
            {"spec": {"containers": [None]}},
            "containers: element 0: associative list with keys may not have a null element",
        ),
        ({"spec": []}, ".spec: expected map, got &{[]}"),
        ({"metadata": {"labels": {"a": 5}}}, ".labels.a: expected string, got &value.valueUnstructured{Value:5}"),
        ({"spec": {"nodeName": ["x", 1]}}, 'got &value.valueUnstructured{Value:[]interface {}{"x", 1}}'),
        ({"spec": {"priority": {}}}, ".spec.priority: expected numeric (int or float), got map[string]interface {}"),
        ({"spec": {"priority": True}}, ".spec.priority: expected numeric (int or float), got bool"),
        ({"spec": {"hostNetwork": "yes"}}, 'expected boolean, got &value.valueUnstructured{Value:"yes"}'),
        ({"metadata": {"finalizers": [{}]}}, "associative list without keys has an element that's a map type"),
        (
            {"spec": container(command=["a", 1.5])},
            ".command[1]: expected string, got &value.valueUnstructured{Value:1.5}",
        ),
        ({"metadata": {"creationTimestamp": "x"}}, 'cannot parse "x" as "2006"'),
        ({"a": 1, "b": 2}, "errors:\n  .a: field not declared in schema\n  .b: field not declared in schema"),
    ],
)
def test_what_cannot_be_applied(members: dict[str, Any], why: str) -> None:
    with pytest.raises(ApiError) as refused:
        applied(None, "a", **members)
    assert refused.value.code == 400
    assert why in refused.value.message


VALUES = st.dictionaries(st.sampled_from("abcd"), st.sampled_from("12"), max_size=3)
WRITES = st.lists(st.tuples(st.sampled_from("xyz"), VALUES, st.sampled_from([(), ("f",), ("f", "g")])), max_size=6)


@given(WRITES)
def test_whatever_is_applied_in_turn_is_there_and_owned(
    writes: list[tuple[str, dict[str, str], tuple[str, ...]]],
) -> None:
    live: Applied | None = None
    for who, data, finalizers in writes:
        meta = {"name": "p", "finalizers": list(finalizers)}
        made = stored(applied(live, who, kind=ConfigMap, force=True, data=data, metadata=meta))
        assert {name: made.document["data"][name] for name in data} == data
        assert set(finalizers) <= set(made.document["metadata"].get("finalizers", ()))
        assert stored(applied(made, who, kind=ConfigMap, force=True, data=data, metadata=meta)) == made
        live = made
    if live is not None:
        for who in "xyz":
            live = stored(applied(live, who, kind=ConfigMap))
        assert not live.document.get("data")
        assert not live.document["metadata"].get("finalizers")
        assert live.entries == ()


NAMES = st.sampled_from(["f:a", "f:b", 'k:{"name":"c"}', "v:1"])
TREES: st.SearchStrategy[Tree] = st.recursive(
    st.just({}), lambda inner: st.dictionaries(NAMES | st.just("."), inner, min_size=1, max_size=3), max_leaves=8
).map(lambda tree: {name: inner for name, inner in _sane(tree).items() if name != "."})


def _sane(tree: Tree) -> Tree:
    """`.` has nothing below it, and never stands alone."""
    kept = {name: {} if name == "." else _sane(inner) for name, inner in tree.items()}
    return {} if kept.keys() == {"."} else kept


@given(TREES, TREES)
def test_sets_of_fields_are_sets(one: Tree, other: Tree) -> None:
    mine, theirs = set(paths(one)), set(paths(other))
    assert set(paths(union(one, other))) == mine | theirs
    assert set(paths(without(one, other))) == mine - theirs
    assert set(paths(common(one, other))) == mine & theirs
    assert well_formed(one)


MAPS = "/api/v1/namespaces/default/configmaps"


async def ask(server: Server, path: str, body: Any, *, identity: Identity | None = None) -> tuple[int, Any]:
    options: Any = {"identity": identity} if identity else {}
    answer = await server.ask("PATCH", path, json.dumps(body).encode(), content_type=APPLY, **options)
    return answer.status, document(await answer.read())


def config_map(**data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}


async def test_creation_by_apply_takes_the_right_to_create(server: Server) -> None:
    patch_only = Role(
        metadata=ObjectMeta(name="r", namespace="default"),
        rules=(PolicyRule(verbs=("patch",), api_groups=("",), resources=("configmaps",)),),
    )
    await server.client.create(patch_only)
    await server.client.create(
        RoleBinding(
            metadata=ObjectMeta(name="r", namespace="default"),
            subjects=(Subject(kind="User", name="jane"),),
            role_ref=RoleRef(kind="Role", name="r", api_group="rbac.authorization.k8s.io"),
        )
    )
    jane = Identity("jane", ("system:authenticated",))
    status, refused = await ask(server, f"{MAPS}/a?fieldManager=m", config_map(k="1"), identity=jane)
    assert status == 403
    assert 'User "jane" cannot create resource "configmaps"' in refused["message"]
    assert (await ask(server, f"{MAPS}/a?fieldManager=m", config_map(k="1")))[0] == 201
    assert (await ask(server, f"{MAPS}/a?fieldManager=m", config_map(k="2"), identity=jane))[0] == 200


async def test_a_subresource_creates_nothing(server: Server) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "status": {"podIP": "1.2.3.4"}}
    assert (await ask(server, "/api/v1/namespaces/default/pods/p/status?fieldManager=m", pod))[0] == 404


async def test_what_apply_repeats_is_not_written(server: Server) -> None:
    _, made = await ask(server, f"{MAPS}/a?fieldManager=m", config_map(k="1"))
    _, again = await ask(server, f"{MAPS}/a?fieldManager=m", config_map(k="1"))
    assert again == made


async def test_identity_belongs_to_the_server(server: Server) -> None:
    stranger = config_map(k="1")
    stranger["metadata"] |= {"uid": "11111111-1111-1111-1111-111111111111"}
    status, refused = await ask(server, f"{MAPS}/a?fieldManager=m", stranger)
    assert (status, "uid mismatch" in refused["message"]) == (409, True)
    status, refused = await ask(server, f"{MAPS}/a?fieldManager=m", config_map(k="1") | {"kind": "Secret"})
    assert (status, refused["message"]) == (400, "invalid object type: /v1, Kind=Secret")


@pytest.mark.parametrize(
    "body",
    [
        b"{null: 1}",
        b"[1]",
        b"apiVersion: [1]\nkind: {a: 1}",
        b"apiVersion: v1\nkind: ConfigMap\nmetadata: 5",
        b"apiVersion: v1\nkind: ConfigMap\nmetadata: {labels: {~: a}}",
        b"{a",
        b"apiVersion: v1\nkind: ConfigMap\ndata: {a: .nan}",
        b"apiVersion: v1\nkind: ConfigMap\nmetadata: {finalizers: [{a: b}, {a: b}]}",
        b"\xff\xfe",
    ],
)
async def test_a_document_that_is_no_object_is_the_clients_mistake(server: Server, body: bytes) -> None:
    for _ in ("new", "there already"):
        answer = await server.ask("PATCH", f"{MAPS}/a?fieldManager=m", body, content_type=APPLY)
        assert answer.status == 400, await answer.read()
        await ask(server, f"{MAPS}/a?fieldManager=m", config_map(k="1"))


async def test_managers_can_be_handed_over(server: Server) -> None:
    """As kubectl does when it moves an object from client-side to server-side apply."""
    body = json.dumps(config_map(k="1")).encode()
    made = document(await (await server.ask("POST", f"{MAPS}?fieldManager=kubectl-client-side-apply", body)).read())
    entries = [{**made["metadata"]["managedFields"][0], "manager": "kubectl", "operation": "Apply"}]
    change = [{"op": "replace", "path": "/metadata/managedFields", "value": entries}]
    answer = await server.ask(
        "PATCH", f"{MAPS}/a", json.dumps(change).encode(), content_type="application/json-patch+json"
    )
    assert document(await answer.read())["metadata"]["managedFields"] == entries
    status, left = await ask(server, f"{MAPS}/a?fieldManager=kubectl", config_map(l="1"))
    assert (status, left["data"]) == (200, {"l": "1"})


async def test_too_many_writers_become_one(server: Server) -> None:
    await ask(server, f"{MAPS}/a?fieldManager=m", config_map(k="1"))
    for number in range(13):
        change = json.dumps({"data": {f"k{number}": "1"}}).encode()
        await server.ask(
            "PATCH", f"{MAPS}/a?fieldManager=w{number:02}", change, content_type="application/merge-patch+json"
        )
    entries = document(await (await server.ask("GET", f"{MAPS}/a")).read())["metadata"]["managedFields"]
    updaters = [entry["manager"] for entry in entries if entry["operation"] == "Update"]
    assert len(updaters) == 10
    assert updaters.count("ancient-changes") == 1
    fields = next(entry["fieldsV1"] for entry in entries if entry["manager"] == "ancient-changes")
    assert fields == {"f:data": {f"f:k{number}": {} for number in range(4)}}


LAST = "kubectl.kubernetes.io/last-applied-configuration"


def client_side(**data: str) -> Applied:
    """What `kubectl apply` without `--server-side` leaves behind."""
    last = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "p"}, "data": data})
    meta = {"name": "p", "annotations": {LAST: last}}
    made = applied(None, "kubectl-client-side-apply", kind=ConfigMap, metadata=meta, data=data)
    return Applied(document=made.document, entries=tuple(replace(entry, operation="Update") for entry in made.entries))


def test_kubectl_goes_over_to_the_servers_apply_without_conflict() -> None:
    made = applied(client_side(k="1"), "kubectl", kind=ConfigMap, data={"k": "2"})
    assert made.document["data"] == {"k": "2"}
    assert json.loads(made.document["metadata"]["annotations"][LAST])["data"] == {"k": "2"}
    with pytest.raises(ApiError, match="kubectl-client-side-apply"):
        applied(client_side(k="1"), "another", kind=ConfigMap, data={"k": "2"})


def test_what_another_changed_since_is_a_conflict_for_kubectl_too() -> None:
    changed = applied(client_side(k="1"), "m", kind=ConfigMap, force=True, data={"k": "5"})
    with pytest.raises(ApiError, match='conflict with "m"'):
        applied(changed, "kubectl", kind=ConfigMap, data={"k": "2"})
