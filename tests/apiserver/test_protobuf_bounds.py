"""Protobuf bodies of very many fields and levels, and values inside of raw JSON: counted while they are read."""

import asyncio
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from podfit.apiserver.request import protobuf
from podfit.apiserver.request.documents import DEEPEST, MOST_BUILT_IN, MOST_OF_POD, MOST_VALUES
from podfit.apiserver.request.protobuf.wire import MOST_FIELDS
from podfit.core.errors import ApiError
from support.protobuf import enveloped, part, varint
from support.server import running_server
from support.turns import TURN_MS, turns

MEBIBYTES_3 = 3 * 2**20
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
MAPS = "/api/v1/namespaces/default/configmaps"
UNKNOWN = varint(15 << 3) + b"\0"
"""A field of two bytes that no kind has."""


def refused(body: bytes) -> ApiError:
    with pytest.raises(ApiError) as caught:
        protobuf.decode(body)
    return caught.value


def review(raw: bytes) -> bytes:
    return enveloped("authorization.k8s.io/v1", "SelfSubjectAccessReview", raw)


def definition(schema: bytes) -> bytes:
    validation = part(1, schema)
    version = part(1, b"v1") + part(4, validation)
    return enveloped("apiextensions.k8s.io/v1", "CustomResourceDefinition", part(2, part(7, version)))


def config(entries: int) -> bytes:
    data = b"".join(part(2, part(1, b"k%d" % number) + part(2, b"")) for number in range(entries))
    return enveloped("v1", "ConfigMap", part(1, part(1, b"big")) + data)


def nested(levels: int) -> bytes:
    schema = b""
    for _ in range(levels):
        schema = part(28, schema)  # not
    return definition(schema)


def least_bytes(make: Callable[[int], bytes]) -> bytes:
    """As much of something as a body may have bytes."""
    once = len(make(1001)) - len(make(1000))
    return make((MEBIBYTES_3 - 1000) // max(1, once))


@pytest.mark.parametrize(
    "make",
    [
        lambda count: review(UNKNOWN * count),
        lambda count: review(b"") + UNKNOWN * count,
        lambda count: enveloped("v1", "ConfigMap", part(2, b"") * count),
        lambda count: enveloped("v1", "Pod", part(2, part(14, part(4, b"\0" * count)))),
        lambda count: enveloped("v1", "Pod", part(2, part(14, part(4, 0) * count))),
        lambda count: definition(part(8, part(1, b"[" + b"0," * count + b"0]"))),
        lambda count: definition(part(8, part(1, b"0")) * count),
    ],
    ids=["unknown", "of the envelope", "entries", "packed", "one by one", "raw JSON", "many raw JSON"],
)
def test_as_many_fields_as_three_megabytes_hold(make: Callable[[int], bytes]) -> None:
    body = least_bytes(make)
    assert len(body) > MEBIBYTES_3 - 5000
    assert refused(body).code == 413
    protobuf.decode(make(1000))


def test_the_last_field_that_there_may_be() -> None:
    spent = 4  # of the envelope
    protobuf.decode(review(UNKNOWN * (MOST_FIELDS - spent)))
    assert refused(review(UNKNOWN * (MOST_FIELDS - spent + 1))).code == 413


def test_values_are_counted_as_of_json() -> None:
    numbers = MOST_VALUES - 20
    protobuf.decode(enveloped("v1", "Pod", part(2, part(14, part(4, b"\1" * numbers)))))
    assert refused(enveloped("v1", "Pod", part(2, part(14, part(4, b"\1" * MOST_VALUES))))).code == 413


def test_commas_in_a_text_are_no_values() -> None:
    text = json.dumps("," * (2 * MOST_FIELDS)).encode()
    read = protobuf.decode(definition(part(8, part(1, text))))
    (version,) = read["spec"]["versions"]
    assert version["schema"]["openAPIV3Schema"]["default"] == "," * (2 * MOST_FIELDS)


def test_levels_are_those_of_json() -> None:
    protobuf.decode(nested(DEEPEST - 20))
    for body in (nested(DEEPEST + 1), nested(100_000), definition(part(8, part(1, b"[" * 150 + b"]" * 150)))):
        assert refused(body).code == 400


def test_messages_in_messages_are_not_copied() -> None:
    """Each level of a copy would be three megabytes more."""
    schema = part(7, b"x" * (MEBIBYTES_3 - 5000))
    for _ in range(DEEPEST - 20):
        schema = part(28, schema)
    body = definition(schema)
    tracemalloc.start()
    try:
        protobuf.decode(body)
        assert tracemalloc.get_traced_memory()[1] < 3 * MEBIBYTES_3
    finally:
        tracemalloc.stop()


async def test_no_body_holds_up_another_client(tmp_path: Path) -> None:
    """Six at once, as in the attack that took the event loop 5 s; read beside it, they are refused there."""
    body = least_bytes(lambda count: review(UNKNOWN * count))
    answered = 0
    async with running_server(tmp_path) as server:
        await server.ask("GET", MAPS)  # what the first request loads stays

        async def attack() -> int:
            return (await server.ask("POST", REVIEWS, body, content_type=protobuf.MEDIA_TYPE)).status

        with turns() as measured:
            attacks = [asyncio.create_task(attack()) for _ in range(6)]
            while not all(task.done() for task in attacks):
                answered += (await server.ask("GET", MAPS)).status == 200
                await asyncio.sleep(0)
        assert {task.result() for task in attacks} == {413}
    assert 1000 * measured.worst < TURN_MS
    assert answered > 6, "others are asked for the bodies' sake alone"


@pytest.mark.parametrize(("entries", "status"), [(MOST_BUILT_IN - 10, 201), (MOST_BUILT_IN, 413)])
async def test_an_object_has_as_many_values_as_in_json(tmp_path: Path, entries: int, status: int) -> None:
    async with running_server(tmp_path) as server:
        await server.ask("GET", MAPS)
        with turns() as measured:
            answer = await server.ask("POST", MAPS, config(entries), content_type=protobuf.MEDIA_TYPE)
        assert answer.status == status, await answer.read()
        if status == 201:
            read = json.loads(await (await server.ask("GET", f"{MAPS}/big")).read())
            assert len(read["data"]) == entries
    assert 1000 * measured.worst < TURN_MS


async def test_numbers_of_one_byte_are_values(tmp_path: Path) -> None:
    """Packed, a value takes one byte, where JSON takes two."""
    pod = enveloped("v1", "Pod", part(1, part(1, b"big")) + part(2, part(14, part(4, b"\1" * (MOST_OF_POD + 1)))))
    async with running_server(tmp_path) as server:
        answer = await server.ask("POST", "/api/v1/namespaces/default/pods", pod, content_type=protobuf.MEDIA_TYPE)
    assert answer.status == 413
