"""Documents with very many values, and what is kept of large ones."""

import json
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from podfit.api.core.v1.config.types import ConfigMap
from podfit.api.registry import resources
from podfit.apiserver.registry import stored
from podfit.apiserver.registry.apply.apply import Application
from podfit.apiserver.registry.apply.managed import Entries
from podfit.apiserver.request.documents import (
    MOST_BUILT_IN,
    MOST_CUSTOM,
    MOST_OF_POD,
    MOST_VALUES,
    check_encoded,
    check_size,
    parse_json,
)
from podfit.apiserver.request.yaml_documents import parse_yaml_strictly
from podfit.core.errors import ApiError
from support.server import running_server
from support.turns import TURN_MS, cpu_ms, worst_ms

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"


def config(count: int) -> dict[str, Any]:
    data = {f"k{number}": "" for number in range(count)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "big"}, "data": data}


@pytest.mark.parametrize(
    "make",
    [lambda: [0] * MOST_VALUES, lambda: {str(i): [] for i in range(MOST_VALUES)}, lambda: [[""] * MOST_VALUES]],
    ids=["list", "map", "list in a list"],
)
def test_more_values_than_a_document_may_have(make: Callable[[], Any]) -> None:
    value = make()
    for read in (parse_json, parse_yaml_strictly):
        with pytest.raises(ApiError, match="the limit is 50000 values") as refused:
            read(json.dumps(value).encode())
        assert refused.value.code == 413
    check_size([0] * (MOST_VALUES - 1))


def test_marks_inside_of_strings_are_no_values() -> None:
    assert parse_json(json.dumps({"a": ",[{" * 400_000, "b": '\\",' * 100_000}).encode())[1] == []
    check_encoded(json.dumps({"a": ",[{" * 400_000}).encode(), 1000)


@pytest.mark.parametrize(
    ("begins", "again", "times", "ends"),
    [
        (b"[", b"[],", 900_000, b"[]]"),
        (b"[", b"1,", 1_400_000, b"1]"),
        (b'["', b'\\"', 1_400_000, b""),
        (b'{"a":"', b",", 3_000_000, b'"}'),
    ],
)
def test_a_document_of_three_megabytes_is_refused_or_read_in_time(
    begins: bytes, again: bytes, times: int, ends: bytes
) -> None:
    body = begins + again * times + ends

    def read() -> None:
        with suppress(ApiError):
            parse_json(body)

    assert cpu_ms(read) < 100


def test_members_that_come_twice_are_counted_once() -> None:
    body = ("{" + ",".join(f'"k{number % 20_000}": 1' for number in range(40_000)) + "}").encode()
    assert cpu_ms(lambda: parse_json(body), most=200) < 200
    assert len(parse_json(body)[1]) == 20_000


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1:59", "1:59"),
        ("1:59" + ":59" * 50_000, "1:59" + ":59" * 50_000),
        ("1:30.5", "1:30.5"),
        ("12", 12),
        ("-0x1f", -31),
        ("0b11", 3),
        ("017", 15),
        ("1_000", 1000),
        ("1.5", 1.5),
        ("1e3", 1000),
        ("1.0e+3", 1000.0),
        ("+5", 5),
        (".5", 0.5),
    ],
)
def test_numbers_of_yaml(text: str, value: Any) -> None:
    assert parse_yaml_strictly(f"a: {text}".encode())[0] == {"a": value}


async def test_an_object_of_a_built_in_kind_has_fewer(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        for body, status in ((config(MOST_BUILT_IN - 10), 201), (config(MOST_BUILT_IN), 413)):
            assert (await server.ask("POST", MAPS, json.dumps(body).encode())).status == status
        more = json.dumps({"data": {f"m{number}": "" for number in range(MOST_BUILT_IN)}}).encode()
        for kind in ("merge-patch", "strategic-merge-patch"):
            answer = await server.ask("PATCH", f"{MAPS}/big", more, content_type=f"application/{kind}+json")
            assert answer.status == 413
        answer = await server.ask(
            "PATCH",
            f"{MAPS}/big?fieldManager=m",
            json.dumps(config(MOST_BUILT_IN)).encode(),
            content_type="application/apply-patch+yaml",
        )
        assert answer.status == 413


async def test_patches_do_not_add_up_to_more(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        statuses = []
        for step in range(8):
            body = json.dumps({"data": {f"{step}.{number}": "" for number in range(MOST_BUILT_IN - 10)}}).encode()
            if not step:
                body = json.dumps(config(MOST_BUILT_IN - 10)).encode()
                statuses.append((await server.ask("POST", MAPS, body)).status)
            else:
                answer = await server.ask("PATCH", f"{MAPS}/big", body, content_type="application/merge-patch+json")
                statuses.append(answer.status)
        assert statuses[0] == 201
        assert statuses[-1] == 413


APPLY = "application/apply-patch+yaml"


async def test_managers_of_the_same_keys(tmp_path: Path) -> None:
    """What many own costs each later write, so the managers count as values of the object, too."""
    body = json.dumps(config(MOST_BUILT_IN - 2000)).encode()
    async with running_server(tmp_path) as server:

        async def applied(manager: str) -> int:
            return (await server.ask("PATCH", f"{MAPS}/big?fieldManager={manager}", body, content_type=APPLY)).status

        assert [await applied(f"m{number}") for number in range(4)] == [201, 200, 200, 413]
        small = json.dumps({"data": {"k5": "y"}}).encode()
        answer = await server.ask("PATCH", f"{MAPS}/big", small, content_type="application/merge-patch+json")
        assert answer.status == 200


async def test_of_many_conflicts_the_first_are_listed(tmp_path: Path) -> None:
    def of(value: str) -> bytes:
        return json.dumps(config(5000) | {"data": {f"k{number:04}": value for number in range(5000)}}).encode()

    async with running_server(tmp_path) as server:
        for manager, expected in (("a", 201), ("b", 200)):
            path = f"{MAPS}/big?fieldManager={manager}"
            assert (await server.ask("PATCH", path, of(""), content_type=APPLY)).status == expected
        answer = await server.ask("PATCH", f"{MAPS}/big?fieldManager=c", of("x"), content_type=APPLY)
    assert answer.status == 409
    assert isinstance(answer.body, bytes)
    refusal = json.loads(answer.body)
    lines = refusal["message"].splitlines()
    assert lines[0] == 'Apply failed with 10000 conflicts: conflicts with "a":'
    assert lines[1:3] == ["- .data.k0000", "- .data.k0001"]
    assert lines[-2:] == ["- .data.k0999", "and 9000 more"]
    assert len(refusal["details"]["causes"]) == len(lines) - 2 == 1000


def test_an_apply_of_many_keys_that_many_own() -> None:
    """One turn of the loop: each key is looked at a few times, whoever owns it."""
    document = config(MOST_BUILT_IN - 2000)
    info = next(resource for resource in resources() if resource.type is ConfigMap)
    entries: Entries = ()
    for manager in ("a", "b", "c", "a"):
        wanted = Application(document=document, manager=manager, subresource="", reset={}, force=True, now="")
        assert cpu_ms(partial(wanted.to, info, document, entries)) < TURN_MS
        entries = wanted.to(info, document, entries).entries
    check = msgspec.json.encode([entry.fields_v1 for entry in entries])
    assert cpu_ms(lambda: check_encoded(check, 60_000)) < TURN_MS


async def test_large_yaml_becomes_json(tmp_path: Path) -> None:
    lines = "".join(f"  k{number}: x\n" for number in range(2000))
    body = f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: big\ndata:\n{lines}".encode()
    async with running_server(tmp_path) as server:
        assert (await server.ask("POST", MAPS, body, content_type="application/yaml")).status == 201
        answer = await server.ask(
            "PATCH", f"{MAPS}/big?fieldManager=m&force=true", body, content_type="application/apply-patch+yaml"
        )
        assert answer.status == 200
        assert (await server.ask("POST", MAPS, body + b"\tx", content_type="application/yaml")).status == 400


def test_of_large_objects_few_are_kept() -> None:
    assert stored._large.cache_info().maxsize == stored.MOST_LARGE


def pod(volumes: int) -> dict[str, Any]:
    """Of 7 values, and 3 a volume."""
    listed = [{"name": f"v{number}", "emptyDir": {}} for number in range(volumes)]
    return {"metadata": {"name": "big"}, "spec": {"containers": [{"name": "c", "image": "x"}], "volumes": listed}}


async def test_a_pod_has_fewer_still(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        for volumes, status in ((MOST_OF_POD // 3, 413), (MOST_OF_POD // 3 - 5, 201)):
            assert (await server.ask("POST", PODS, json.dumps(pod(volumes)).encode())).status == status
        patch = json.dumps({"metadata": {"finalizers": [f"a.b/{number}" for number in range(MOST_OF_POD)]}}).encode()
        answer = await server.ask("PATCH", f"{PODS}/big", patch, content_type="application/merge-patch+json")
        assert answer.status == 413


async def test_patches_of_a_pod_do_not_add_up_to_more(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        assert (await server.ask("POST", PODS, json.dumps(pod(1)).encode())).status == 201
        statuses = []
        for step in range(6):
            finalizers = [f"a.b/{step}-{number}" for number in range(MOST_OF_POD - 10)]
            body = json.dumps({"metadata": {"finalizers": finalizers}}).encode()
            answer = await server.ask(
                "PATCH", f"{PODS}/big", body, content_type="application/strategic-merge-patch+json"
            )
            statuses.append(answer.status)
        assert statuses[0] == 200
        assert statuses[-1] == 413


async def test_a_custom_resource_has_more(tmp_path: Path) -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    definition = {
        "metadata": {"name": "bags.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "bags", "kind": "Bag"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }
    definitions, bags = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/apis/example.com/v1/namespaces"
    async with running_server(tmp_path) as server:
        assert (await server.ask("POST", definitions, json.dumps(definition).encode())).status == 201
        for count, status in ((MOST_CUSTOM, 413), (MOST_CUSTOM - 10, 201)):
            bag = {"apiVersion": "example.com/v1", "kind": "Bag", "metadata": {"name": "a"}, "a": {}}
            body = json.dumps(bag | {"a": {f"k{number}": {} for number in range(count)}}).encode()
            statuses = list[int]()

            async def sent(body: bytes = body, statuses: list[int] = statuses) -> None:
                statuses.append((await server.ask("POST", f"{bags}/default/bags", body)).status)

            assert await worst_ms(sent) < TURN_MS
            assert statuses[0] == status
