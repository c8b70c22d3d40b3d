"""Whatever is asked: no failure of the server, no hang, and nothing stored that is not valid."""

import asyncio
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from podfit.api.core.v1.nodes.types import Node
from podfit.api.meta.v1.types import ObjectMeta
from support.fuzzing import Fuzz, check_stored, checked, encoded, populate
from support.server import Server, running_server

Figure = Callable[[str, object], None]
SHORT, COURSE = 67, 60  # requests to one server: 30 short courses are 2,010
PARTS, SERVERS = 10, 170  # of the campaign


async def _course(number: int, requests: int) -> int:
    with tempfile.TemporaryDirectory() as directory:
        async with running_server(Path(directory)) as server:
            await server.client.create(Node(metadata=ObjectMeta(name="n1")))
            fuzz = Fuzz(server, number)
            await fuzz.run(requests)
            return fuzz.sent


@settings(max_examples=30, database=None, phases=[Phase.explicit, Phase.generate], derandomize=True)
@given(number=st.integers(0, 2**40))
def test_objects_and_patches_at_random(number: int) -> None:
    """A number is a course: objects and patches from the schemas of the kinds, on every door."""
    assert asyncio.run(_course(number, SHORT)) == SHORT


@pytest.mark.campaign
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(PARTS))
def test_objects_and_patches_at_random_many_times(part: int, figure: Figure) -> None:
    """A part of 100,000 requests: 170 servers, 60 each. Objects and patches built from the Structs' own schemas and
    spoilt at random, on every kind, subresource and verb. No answer of 500 or more, none late, and everything stored is
    valid and stays the same when it is read and written."""
    first = 1_000_000 + SERVERS * part
    figure("requests", sum(asyncio.run(_course(first + number, COURSE)) for number in range(SERVERS)))


# ---------------------------------------------------------------------- schemathesis


Sent = tuple[str, str, bytes, str]
THERE = {"namespace": "default", "name": "a"}  # an object of each kind is there under this name
SCHEMATHESIS_PARTS, EXAMPLES = 5, 15  # of the campaign: 20,000 requests and more


def _cases(document: dict[str, Any], number: int, examples: int) -> list[Sent]:
    """Requests that schemathesis makes of a document's operations; most are about what is there."""
    schema, random = schemathesis.openapi.from_dict(document), Random(number)
    found: list[Sent] = []
    for result in schema.get_all_operations():

        @seed(number)
        @settings(
            max_examples=examples,
            database=None,
            phases=[Phase.generate],
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(result.ok().as_strategy())  # type: ignore[union-attr]  # our documents are valid
        def collect(case: Any) -> None:
            for parameter, known in THERE.items():
                if parameter in case.path_parameters and random.random() < 0.7:
                    case.path_parameters[parameter] = known
            query = "&".join(f"{name}={value}" for name, value in (case.query or {}).items())
            path = f"{case.formatted_path}?{query}" if query else case.formatted_path
            try:
                body = encoded(case.body)
            except (TypeError, ValueError):
                body = b""
            found.append((case.method, path, body, case.media_type or "application/json"))

        collect()
    return found


async def _sent(number: int, examples: int) -> int:
    with tempfile.TemporaryDirectory() as directory:
        async with running_server(Path(directory)) as server:
            await populate(server, number, THERE["name"])
            index = json.loads(await (await server.ask("GET", "/openapi/v3")).read())
            sent = 0
            for page in index["paths"].values():
                document = json.loads(await (await server.ask("GET", page["serverRelativeURL"])).read())
                cases = await asyncio.to_thread(_cases, document, number, examples)
                sent += await _send(server, cases)
            await check_stored(server)
            return sent


async def _send(server: Server, cases: list[Sent]) -> int:
    for method, path, body, kind in cases:
        await checked(server, method, path.encode("utf-8", "surrogatepass").decode("utf-8", "replace"), body, kind=kind)
    return len(cases)


def test_requests_of_schemathesis() -> None:
    """From our own OpenAPI documents, every group."""
    assert asyncio.run(_sent(7, 1)) > 300


@pytest.mark.campaign
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(SCHEMATHESIS_PARTS))
def test_requests_of_schemathesis_many_times(part: int, figure: Figure) -> None:
    """schemathesis over our own OpenAPI documents, every operation of every group: no answer of 500 or more, none late,
    and everything stored is valid and stays the same when it is read and written."""
    figure("requests", asyncio.run(_sent(part, EXAMPLES)))
