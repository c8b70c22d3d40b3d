"""Objects in other forms than their own: metadata alone, and tables, of reads, watches and writes."""

import json
from typing import Any

import pytest

from podfit.apiserver.handlers.patching import MERGE_PATCH
from support.resizing import send
from support.server import Server

MAPS = "/api/v1/namespaces/default/configmaps"
BODY = {"metadata": {"name": "a", "labels": {"t": "x"}}, "data": {"k": "1"}}


def accept(shape: str, version: str = "v1") -> str:
    return f"application/json;as={shape};v={version};g=meta.k8s.io"


PARTIAL, PARTIAL_LIST = accept("PartialObjectMetadata"), accept("PartialObjectMetadataList")


async def made(server: Server) -> Any:
    code, found = await send(server, "POST", MAPS, BODY)
    assert code == 201
    return found


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_metadata_of_an_object(server: Server, version: str) -> None:
    whole = await made(server)
    _, found = await send(server, "GET", f"{MAPS}/a", accept=accept("PartialObjectMetadata", version))
    assert found == {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": whole["metadata"],
    }


async def test_metadata_of_a_list(server: Server) -> None:
    whole = await made(server)
    _, found = await send(server, "GET", f"{MAPS}?labelSelector=t%3Dx", accept=PARTIAL_LIST)
    assert (found["kind"], found["apiVersion"]) == ("PartialObjectMetadataList", "meta.k8s.io/v1")
    assert found["metadata"]["resourceVersion"]
    assert [item["metadata"] for item in found["items"]] == [whole["metadata"]]
    assert found["items"][0]["kind"] == "PartialObjectMetadata"


async def test_a_watch_of_metadata(server: Server) -> None:
    whole = await made(server)
    answer = await server.ask("GET", f"{MAPS}?watch=1&labelSelector=t%3Dx", accept=PARTIAL)
    assert not isinstance(answer.body, bytes)
    (line,) = (await anext(aiter(answer.body))).splitlines()
    assert json.loads(line) == {
        "type": "ADDED",
        "object": {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": whole["metadata"]},
    }
    await answer.body.aclose()  # type: ignore[attr-defined]  # a stream that can be closed


@pytest.mark.parametrize(
    ("path", "form", "text"),
    [
        (
            MAPS,
            PARTIAL,
            "you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)",
        ),
        (
            f"{MAPS}/a",
            f"{PARTIAL_LIST},application/json",
            "you requested PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)",
        ),
    ],
)
async def test_a_list_is_no_object(server: Server, path: str, form: str, text: str) -> None:
    await made(server)
    code, refused = await send(server, "GET", path, accept=form)
    assert (code, refused["reason"], refused["message"]) == (406, "NotAcceptable", text)


async def test_answers_to_writes(server: Server) -> None:
    code, found = await send(server, "POST", MAPS, BODY, accept=PARTIAL)
    assert (code, found["kind"], found["metadata"]["name"]) == (201, "PartialObjectMetadata", "a")
    assert "data" not in found
    change = {"data": {"k": "1", "l": "2"}}
    code, found = await send(server, "PATCH", f"{MAPS}/a", change, MERGE_PATCH, accept=accept("Table"))
    assert (code, found["kind"], found["rows"][0]["cells"][:2]) == (200, "Table", ["a", 2])
    code, found = await send(server, "DELETE", f"{MAPS}/a", accept=accept("Table"))
    assert (code, found["kind"]) == (200, "Status")


@pytest.mark.parametrize("form", [PARTIAL_LIST, "application/xml", accept("PartialObjectMetadata", "v7")])
async def test_a_write_whose_answer_nobody_would_take_is_not_made(server: Server, form: str) -> None:
    assert (await send(server, "POST", MAPS, BODY, accept=form))[0] == 406
    assert (await send(server, "GET", f"{MAPS}/a"))[0] == 404
