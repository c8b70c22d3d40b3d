"""Amounts of upstream's messages, for people."""

import pytest

from podfit.answers.facts.readable import readable, readable_amount, readable_text, why_the_class_stays
from podfit.answers.facts.rights import by_rights

NODE = "Node didn't have enough capacity: {}, requested: {}, capacity: {}"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (NODE.format("memory", 10995116277760, 25171644416), NODE.format("memory", "10Ti", "23.44Gi")),
        (NODE.format("cpu", 3000, 2500), NODE.format("cpu", "3", "2500m")),
        (
            "Node didn't have enough resource: cpu, requested: 3000, used: 2000, capacity: 4000",
            "Node didn't have enough resource: cpu, requested: 3, used: 2, capacity: 4",
        ),
        (
            "insufficient allocatable resources: memory, requested: 2147483648, allocatable: 1073741824",
            "insufficient allocatable resources: memory, requested: 2Gi, allocatable: 1Gi",
        ),
        (
            "no room: pods, requested: 1, used: 110, capacity: 110",
            "no room: pods, requested: 1, used: 110, capacity: 110",
        ),
        ("limits: ... (31457280) below current usage (41033728)", "limits: ... (30Mi) below current usage (39.13Mi)"),
        *((same, same) for same in ("", "no room", "(12) below current usage (13)")),
        ("memory, requested: " + "9" * 5000 + ", capacity: 1",) * 2,
    ],
)
def test_readable_text(text: str, told: str) -> None:
    assert readable_text(text) == told


@pytest.mark.parametrize(
    ("qos", "told"),
    [
        ("BestEffort", "a running pod that has no requests and limits gets none: set them where new pods are made"),
        ("Guaranteed", "a running Guaranteed pod stays so: change limits and requests alike, REQUEST:LIMIT"),
        ("Odd", ""),
    ],
)
def test_why_the_class_stays(qos: str, told: str) -> None:
    assert why_the_class_stays(f'spec: Invalid value: "{qos}": Pod QOS Class may not change') == told


@pytest.mark.parametrize(("size", "text"), [(0, "0 bytes"), (1, "1 byte"), (1536, "1.5Ki"), (1 << 60, "1Ei")])
def test_readable(size: int, text: str) -> None:
    assert readable(size) == text


@pytest.mark.parametrize(
    ("resource", "text", "shown"),
    [
        ("memory", "203699302", "194.3Mi"),
        ("memory", "24581692Ki", "23.44Gi"),
        ("memory", "-203699302", "-194.3Mi"),
        ("memory", "1024Mi", "1024Mi"),
        ("memory", "0", "0"),
        ("memory", "", ""),
        ("cpu", "126m", "126m"),
    ],
)
def test_readable_amount(resource: str, text: str, shown: str) -> None:
    assert readable_amount(resource, text) == shown


def test_rights_are_told_in_one_line() -> None:
    denied = 'nodes "n1" is forbidden: User "jo" cannot get resource "nodes/proxy" in API group "" at the cluster scope'
    notes = (f"no usage from node n1: {denied}", "other", f"throttling: {denied}", "not read: you may not list nodes")
    assert by_rights(notes) == ("other", "not everything may be read; needs: get nodes/proxy, list nodes")
    assert by_rights(("one", "two", "one")) == ("one", "two")
