"""The courses of the attack suite: every line of docs/bounds.md is attacked, and each keeps to the bounds."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.attack_courses import APART, COURSES, Apart, Course
from support.attack_courses.course import Scene
from support.attack_payloads import BODIES, PATCHES, QUERIES
from support.attack_rows import BY_ITSELF, OF_PAYLOADS, ON_A_NODE, TESTS, lines, named
from support.bounded import Victim, bounded

Figure = Callable[[str, object], None]
SEED = 11
SCALE = 0.02
"""Of a flood, in `make test`."""
QUICK = ("violations", "a costly evaluation", "variables", "logs", "patches of a webhook", "the time of day")


def test_every_line_of_the_page_is_attacked() -> None:
    payloads = {payload.bound for payload in (*QUERIES, *BODIES, *PATCHES)}
    assert set(OF_PAYLOADS) == payloads
    attacked = {named(OF_PAYLOADS[bound]) for bound in payloads}
    attacked |= {named(row) for course in COURSES for row in course.rows}
    attacked |= {named(row) for course in APART for row in course.rows}
    for row, test in (ON_A_NODE | BY_ITSELF).items():
        path, _, name = test.partition("::")
        assert f"def {name}(" in (TESTS / path).read_text()
        attacked.add(named(row))
    assert set(lines()) - attacked == set()


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    with bounded(tmp_path_factory.mktemp("courses") / "cluster", node="simulated") as victim:
        victim.ask("GET", "/api/v1/pods")  # what the first request loads stays
        yield victim


def attack(course: Course, victim: Victim, directory: Path, scale: float, figure: Figure) -> None:
    scene = Scene(victim, random.Random(f"{SEED} {course.name}"), directory, scale)
    found = victim.measure(course.name, lambda: course.run(scene), settle=course.settle, stored_mib=course.stored_mib)
    figure("requests", found.requests)
    figure("longest turn", f"{found.turn_ms:.0f} ms")
    figure("second client p99", f"{found.p99_ms:.0f} ms")
    figure("grew", f"{found.peak_mib:.0f} MiB")
    figure("kept", f"{found.kept_mib:.0f} MiB")
    found.check(peak_mib=256 + course.stored_mib, kept_mib=64 + course.stored_mib)


@pytest.mark.parametrize(
    "course", [course for course in COURSES if course.name in QUICK], ids=lambda course: course.name
)
def test_a_course(victim: Victim, tmp_path: Path, course: Course, figure: Figure) -> None:
    attack(course, victim, tmp_path, SCALE, figure)


@pytest.mark.campaign
@pytest.mark.timeout(900)
@pytest.mark.parametrize("course", COURSES, ids=lambda course: course.name)
def test_a_whole_course(victim: Victim, tmp_path: Path, course: Course, figure: Figure) -> None:
    """A seeded course against lines of bounds.md that take more than one request: a cluster with a simulated node and
    4 GiB of address space goes on within the bounds of turns and growth."""
    attack(course, victim, tmp_path, 1.0, figure)


def apart(course: Apart, directory: Path, scale: float, figure: Figure) -> None:
    found = course.run(random.Random(f"{SEED} {course.name}"), directory, scale)
    figure("runs", len(found))
    figure("longest turn", f"{max(figures.turn_ms for figures in found):.0f} ms")
    figure("grew", f"{max(figures.peak_mib for figures in found):.0f} MiB")


@pytest.mark.campaign
@pytest.mark.timeout(900)
@pytest.mark.parametrize("course", APART, ids=lambda course: course.name)
def test_a_process_of_its_own(tmp_path: Path, course: Apart, figure: Figure) -> None:
    """A seeded course against a process of its own: image archives, a damaged data directory, a full disk, a pod that
    ends the node. Each ends with a clear refusal, or goes on, within the bound of growth."""
    apart(course, tmp_path, 1.0, figure)


def test_some_archives(tmp_path: Path, figure: Figure) -> None:
    apart(APART[0], tmp_path, SCALE, figure)
