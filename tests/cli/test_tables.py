"""How a table fits a terminal: equal pods as one row, columns that go first, prose that is wrapped, records at last."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from answers.conversation import METRICS, PODS, Conversation, pod
from answers.test_top import metrics
from cli.test_looks import shown
from podfit.cli.tables import LESS_FIRST, Cell, laid_out

TOP = ("POD", "CONTAINER", "NODE", "CPU", "CPU REQUEST", "CPU LIMIT", "CPU VPA", "THROTTLED", "MEM", "MEM LIMIT")
RECOMMEND = ("WORKLOAD", "PODS", "CONTAINER", "RESOURCE", "REQUEST", "SIZE", "SAVES", "SURE", "FROM", "BECAUSE")
REASON = "90 % of 61 CPU samples were not above it; 15 % on top; raised to the minimum of 25m"


def replica(letters: str, cpu: str = "120m (24 %)") -> tuple[str, ...]:
    name = f"storefront-frontend-7d4b9c-{letters}"
    return name, "app", "worker-1", cpu, "250m", "500m", "300m", "3 %", "64Mi (25 %)", "256Mi"


REPLICAS = [replica(letters) for letters in ("x2x4z", "b8b8b", "zzzzz")]


def lines(header: Sequence[str], rows: Sequence[Sequence[str | Cell]], width: int, *, whole: bool = False) -> list[str]:
    layout = laid_out(header, rows, width=width, whole=whole)
    return ["".join(cell.text for cell in line).rstrip() for line in layout.lines]


@pytest.mark.parametrize("width", [90, 100, 120])
def test_equal_pods_are_one_row_where_the_table_is_too_wide(width: int) -> None:
    told = lines(TOP, REPLICAS, width)
    assert len(told) == 2
    assert told[1].startswith("storefront-frontend-7d4b9c-* (3 pods alike)   app")
    assert max(map(len, told)) <= width


def test_a_terminal_too_narrow_for_the_name_of_several_has_a_row_of_each() -> None:
    told = lines(TOP, REPLICAS, 80)
    assert [line.split()[0] for line in told] == ["POD", *(row[0] for row in REPLICAS)]
    assert max(map(len, told)) <= 80


def test_pods_that_differ_are_not_one_row() -> None:
    other = [*REPLICAS, replica("ccccc", "499m (99 %)"), ("elsewhere", *REPLICAS[0][1:])]
    told = lines(TOP, other, 90)
    assert [line.split("   ")[0].strip() for line in told[1:]] == [
        "storefront-frontend-7d4b9c-* (3 pods alike)",
        "storefront-frontend-7d4b9c-ccccc",
        "elsewhere",
    ]


@pytest.mark.parametrize(("width", "whole"), [(0, False), (200, False), (0, True), (100, True)])
def test_a_pipe_a_wide_terminal_and_wide_output_have_every_pod(width: int, *, whole: bool) -> None:
    told = lines(TOP, REPLICAS, width, whole=whole)
    assert sum(row[0] in line for row in REPLICAS for line in told) == 3
    layout = laid_out(TOP, REPLICAS, width=width, whole=whole)
    assert layout.left_out == ()
    assert all(any(value in line for line in told) for value in ("worker-1", "500m", "300m"))


def test_columns_go_by_what_they_matter() -> None:
    gone = [laid_out(TOP, REPLICAS[:1], width=width).left_out for width in range(140, 60, -1)]
    order = list(dict.fromkeys(name for names in gone for name in names))
    ranks = [next(rank for rank, names in enumerate(LESS_FIRST) if name in names) for name in order]
    assert order[0] == "NODE"
    assert ranks == sorted(ranks)
    assert not {"POD", "CPU", "MEM"} & set(order)


def test_an_empty_column_goes_without_a_word() -> None:
    layout = laid_out(("POD", "CPU", "MEMORY", "VERDICT"), [("web", "1 → 2", "-", "fits")], width=24)
    assert layout.left_out == ()
    assert len(layout.lines) == 2


@pytest.mark.parametrize(("width", "most"), [(100, 3), (80, 4)])
def test_prose_is_wrapped_or_stands_below_its_row(width: int, most: int) -> None:
    workload = "deployment/storefront-frontend"
    rows = [
        (workload, "3", "app", resource, "250m", "25m", "675m", "a guess", "usage", REASON)
        for resource in ("cpu", "memory")
    ]
    told = lines(RECOMMEND, rows, width)
    assert len(told) <= 1 + 2 * most
    assert told[0].startswith("WORKLOAD")
    assert max(map(len, told)) <= width
    assert all(" ".join(told).count(word) >= 2 for word in ("raised", "minimum", "25m"))


def test_too_narrow_for_any_table_is_a_record_of_all_columns() -> None:
    told = lines(TOP, REPLICAS[:1], 50)
    assert told[0] == REPLICAS[0][0]
    assert "  node         worker-1" in told


def several(number: int) -> Conversation:
    pods = [pod(f"storefront-frontend-7d4b9c-{letter * 5}") for letter in "bcdfghj"[:number]]
    items = [metrics(f"{index + 1}0m", "64Mi", made["metadata"]["name"]) for index, made in enumerate(pods)]
    conversation = Conversation(36, *pods)
    documents: dict[str, Any] = {PODS: {"items": pods}, METRICS: {"items": items}}
    conversation.documents |= documents
    return conversation


async def test_top_of_seven_pods_is_a_table_of_eight_lines(tmp_path: Path) -> None:
    seen = await shown(tmp_path, several(7), "top", columns=100)
    rows = [line for line in seen.lines if line.startswith(("POD", "storefront"))]
    assert (seen.code, len(rows), max(map(len, seen.lines)) <= 100) == (0, 8, True)
    assert sum("left out in 100 columns" in line for line in seen.lines) <= 1


async def test_watched_in_a_small_terminal_each_frame_is_a_table(tmp_path: Path) -> None:
    conversation = several(4)
    listed = conversation.documents[PODS]
    conversation.documents[PODS] = [listed, listed, 503]
    seen = await shown(tmp_path, conversation, "top", "--watch", "--interval", "0", columns=80)
    frames = seen.plain.split("POD ")[1:]
    assert len(frames) == 2
    assert [frame.split("error:")[0].count("\nstorefront") for frame in frames] == [4, 4]
    assert all(len(frame.split("error:")[0].splitlines()) <= 12 for frame in frames)
    assert seen.plain.count("left out in 80 columns") == 1


async def test_recommend_is_a_table_at_100_columns(tmp_path: Path) -> None:
    seen = await shown(tmp_path, several(4), "recommend", "--for", "1s", "--interval", "1s", columns=100)
    assert seen.code == 0
    assert sum(line.startswith("WORKLOAD") for line in seen.lines) == 1
    assert max(map(len, seen.lines)) <= 100
