"""Events of the core group and of events.k8s.io are the same objects under other names."""

from typing import Any

import pytest

from podfit.api.core.v1.events.types import Event as CoreEvent
from podfit.api.core.v1.references import ObjectReference
from podfit.api.events.v1.types import Event, from_core, to_core
from podfit.api.meta.codec import convert
from podfit.api.meta.v1.types import ObjectMeta
from podfit.core.errors import ApiError
from support.server import Server, document

PATH = "/apis/events.k8s.io/v1/namespaces/default/events"


def event(name: str, **fields: Any) -> Event:
    body = {
        "metadata": {"name": name, "namespace": "default"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "x.y/z",
        "reportingInstance": "i",
        "action": "a",
        "reason": "r",
        "type": "Normal",
        "regarding": {"kind": "Pod", "namespace": "default", "name": "p"},
        "note": "n",
    }
    return convert(body | fields, Event)


async def test_what_one_group_writes_the_other_shows(server: Server) -> None:
    await server.client.create(event("new"))
    shown = await server.client.get(CoreEvent, "new", "default")
    assert (shown.message, shown.involved_object.name, shown.reporting_component) == ("n", "p", "x.y/z")
    about = ObjectReference(kind="Pod", namespace="default", name="q")
    old = CoreEvent(metadata=ObjectMeta(name="old", namespace="default"), involved_object=about, message="m", count=2)
    await server.client.create(old)
    found = await server.client.get(Event, "old", "default")
    assert (found.note, found.regarding.name, found.deprecated_count) == ("m", "q", 2)
    assert {event.metadata.name for event in (await server.client.list(Event, "default")).items} == {"new", "old"}


async def test_selected_by_the_names_of_the_group(server: Server) -> None:
    await server.client.create(event("new"))
    for field, count in (("regarding.name=p", 1), ("regarding.name=z", 0)):
        answer = await server.ask("GET", f"{PATH}?fieldSelector={field}")
        assert len(document(await answer.read())["items"]) == count
    assert (await server.ask("GET", f"{PATH}?fieldSelector=involvedObject.name%3Dp")).status == 400


async def test_only_the_series_goes_on(server: Server) -> None:
    await server.client.create(event("new"))
    series = {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}
    grown = await server.client.patch(Event, "new", "default", {"series": series})
    assert grown.series is not None
    assert grown.series.count == 2
    with pytest.raises(ApiError) as refused:
        await server.client.patch(Event, "new", "default", {"note": "other"})
    assert "message: Invalid value" in refused.value.message


def test_nothing_is_lost_on_the_way() -> None:
    full = event(
        "e",
        series={"count": 3, "lastObservedTime": "2026-01-01T00:00:01.000000Z"},
        deprecatedCount=4,
        related={"kind": "Node", "name": "n"},
        deprecatedSource={"component": "c"},
    )
    assert from_core(to_core(full)) == full


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"eventTime": None}, "eventTime: Required value"),
        ({"reportingController": ""}, "reportingController: Required value"),
        ({"action": ""}, "action: Required value"),
        ({"reason": "x" * 129}, "can have at most 128 characters"),
        ({"note": "x" * 1025}, "message: Invalid value"),
        ({"deprecatedCount": 1}, 'count: Invalid value: "": needs to be unset'),
    ],
)
async def test_bad_events(server: Server, change: dict[str, Any], text: str) -> None:
    with pytest.raises(ApiError) as refused:
        await server.client.create(event("bad", **change))
    assert text in refused.value.message
