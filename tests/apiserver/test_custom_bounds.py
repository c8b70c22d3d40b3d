"""What a definition and an object together can make the server do, and where it ends."""

import json
from typing import Any

import pytest

from apiserver.test_customs import DEFINITIONS, FOOS, definition, foo, send, version
from support.server import Server
from support.turns import TURN_MS, turns

NUMBERS = {"type": "array", "items": {"type": "integer"}, "maxItems": 300}
PAIRS = {"rule": "self.l.all(a, self.l.all(b, a == b))"}


async def test_costly_rules_do_not_hold_up_the_loop(server: Server) -> None:
    """The rule of the finding, with the bound that it needs to be accepted: 90,000 pairs."""
    spec = {"type": "object", "properties": {"l": NUMBERS}, "x-kubernetes-validations": [PAIRS]}
    await send(server, "POST", DEFINITIONS, definition(versions=[version(spec=spec)]), 201)
    with turns() as measured:
        await send(server, "POST", FOOS, foo(l=[1] * 300), 201)
    assert 1000 * measured.worst < TURN_MS


async def test_a_rule_without_bounds_is_refused(server: Server) -> None:
    rule = {"rule": "self.l.all(a, self.l.all(b, self.l.all(c, a + b > c)))"}
    spec = {"type": "object", "properties": {"l": NUMBERS | {"maxItems": None}}, "x-kubernetes-validations": [rule]}
    refused = await send(server, "POST", DEFINITIONS, definition(versions=[version(spec=spec)]), 422)
    assert "estimated rule cost exceeds budget by factor of more than 100x" in refused["message"]


ITEM: dict[str, Any] = {"type": "object", "properties": {"x": {"type": "string", "default": "d" * 100_000}}}


def growing(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"items": {"type": "array", "items": item}}}


async def test_defaults_are_counted_as_written_out(server: Server) -> None:
    await send(server, "POST", DEFINITIONS, definition(versions=[version(spec=growing(ITEM))]), 201)
    await send(server, "POST", FOOS, foo(items=[{}] * 10), 201)
    refused = await send(server, "POST", FOOS, foo("b", items=[{}] * 2000), 413)
    assert refused["reason"] == "RequestEntityTooLarge"
    assert "defaults are longer than 1048576" in refused["message"]


async def test_an_object_whose_defaults_grew_stays_readable(server: Server) -> None:
    small = {"type": "object", "properties": {"x": {"type": "string"}}}
    await send(server, "POST", DEFINITIONS, definition(versions=[version(spec=growing(small))]), 201)
    for name in ("a", "b", "c"):
        await send(server, "POST", FOOS, foo(name, items=[{}] * 2000), 201)
    current = await send(server, "GET", f"{DEFINITIONS}/foos.example.com")
    current["spec"]["versions"] = [version(spec=growing(ITEM))]
    await send(server, "PUT", f"{DEFINITIONS}/foos.example.com", current)
    listed = await send(server, "GET", FOOS)
    assert [len(json.dumps(item["spec"])) < 10_000 for item in listed["items"]] == [True, True, True]


async def test_a_default_that_makes_itself_too_long_is_refused(server: Server) -> None:
    items = {"type": "array", "default": [{}] * 2000, "items": ITEM}
    spec = {"type": "object", "properties": {"items": items}}
    refused = await send(server, "POST", DEFINITIONS, definition(versions=[version(spec=spec)]), 422)
    assert 'default: Invalid value: "": defaults are longer than 1048576 bytes' in refused["message"]


@pytest.mark.parametrize(
    ("multiple", "value", "status"),
    [
        (1e-300, 1e300, 422),
        (1e300, 1e-300, 201),
        (0.1, 0.3, 201),
        (2, -4, 201),
        (2, -0.0, 201),
        (3, 2**63, 201),
        (1e-300, 2**63, 422),
        (3, 10**300, 201),
    ],
)
async def test_multiples_at_the_ends_of_numbers(server: Server, multiple: float, value: float, status: int) -> None:
    spec = {"type": "object", "properties": {"size": {"type": "number", "multipleOf": multiple}}}
    await send(server, "POST", DEFINITIONS, definition(versions=[version(spec=spec)]), 201)
    await send(server, "POST", FOOS, foo(size=value), status)


async def test_nested_alternatives_are_asked_once(server: Server) -> None:
    """Twice at each level made 2^25 of 25 levels."""
    nested: dict[str, Any] = {"minimum": 5}
    for _ in range(25):
        nested = {"allOf": [nested]}
    spec = {"type": "object", "properties": {"size": {"type": "integer", **nested}}}
    await send(server, "POST", DEFINITIONS, definition(versions=[version(spec=spec)]), 201)
    with turns() as measured:
        await send(server, "POST", FOOS, foo(size=1), 422)
    assert 1000 * measured.worst < TURN_MS


async def test_many_values_against_many_alternatives(server: Server) -> None:
    """20,000 values of which each is compared with 20,000: too long beside the loop, too."""
    names = [f"n{number}" for number in range(20_000)]
    spec = {"type": "object", "properties": {"l": {"type": "array", "items": {"type": "string", "enum": names}}}}
    await send(server, "POST", DEFINITIONS, definition(versions=[version(spec=spec)]), 201)
    refused = await send(server, "POST", FOOS, foo(l=["x"] * 20_000), 413)
    assert "takes too long to check" in refused["message"]


async def test_a_definition_of_many_rules_does_not_hold_up_the_loop(server: Server) -> None:
    """2,000 rules, each with what it is about checked anew."""
    rules = [{"rule": f"self.size > {number} && self.size.isSorted() || true"} for number in range(2000)]
    spec = {"type": "object", "properties": {"size": {"type": "integer"}}, "x-kubernetes-validations": rules}
    with turns() as measured:
        refused = await send(server, "POST", DEFINITIONS, definition(versions=[version(spec=spec)]), 422)
    assert refused["message"].count("found no matching overload for 'isSorted'") == 2000
    assert 1000 * measured.worst < TURN_MS
