"""Each role against each bound of docs/bounds.md, on every resource and subresource (`support.attack_suite`)."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from podfit.api.registry import resources
from support.attack_payloads import BODIES, PATCHES, QUERIES
from support.attack_suite import ACCOUNT, ADMINISTRATOR, Attack, Suite
from support.bounded import Figures, Victim, bounded
from support.role_attack import ROLES

SEED = 11
AT_ONCE = 40  # requests that are measured together
SHORT, LONG = 360, 20_000
SETTLE_SECONDS = 0.2


def attacked(victim: Victim, count: int) -> tuple[Suite, list[Figures], set[tuple[str, str]]]:
    """The suite, what each part cost, and what was sent: role and bound, role and place."""
    suite = Suite(victim, SEED)
    attacks = suite.chosen(count)
    victim.measure("warm", lambda: [suite.send(attack) for attack in attacks[:AT_ONCE]])  # what is loaded stays
    figures = []
    for start in range(AT_ONCE, count, AT_ONCE):
        part = attacks[start : start + AT_ONCE]
        figures.append(
            victim.measure(f"requests {start} to {start + len(part)}", _sending(suite, part), settle=SETTLE_SECONDS)
        )
        try:
            figures[-1].check()
        except AssertionError as error:
            raise AssertionError(f"{error}\n{_alone(suite, part)}") from None
        assert not suite.wrong, suite.wrong
    suite.close()
    return suite, figures, {pair for attack in attacks for pair in _covered(attack)}


def _sending(suite: Suite, part: Iterable[Attack]) -> Callable[[], object]:
    return lambda: [suite.send(attack) for attack in part]


def _alone(suite: Suite, part: Iterable[Attack]) -> str:
    """The requests of a part that cost too much, each sent again by itself."""
    found = [suite.victim.measure(str(attack), _sending(suite, [attack])) for attack in part]
    return "\n".join(str(figures) for figures in sorted(found, key=lambda figures: -figures.turn_ms)[:5])


def _covered(attack: Attack) -> tuple[tuple[str, str], ...]:
    return (attack.role, attack.payload.bound), (attack.role, attack.attempt.full)


def test_a_part_of_the_attacks(tmp_path: Path) -> None:
    with bounded(tmp_path / "cluster", node="simulated") as victim:
        suite, _, _ = attacked(victim, SHORT)
    print(sorted(suite.answers.items()))  # noqa: T201  (pytest -s)
    assert set(suite.sent) == {*ROLES, ADMINISTRATOR, ACCOUNT}


@pytest.mark.campaign
@pytest.mark.timeout(3600)
def test_every_role_against_every_bound(tmp_path: Path, figure: Callable[[str, object], None]) -> None:
    """Nine roles (anonymous, without rights, view, edit, admin, limited administrator of roles, node, service account,
    cluster administrator) send to every resource and subresource, with every verb, requests just under, just over and
    far over each bound of bounds.md, to a cluster with a simulated node and 4 GiB of address space. No answer of 500 or
    more, none late, nothing that a role may not; turns, growth and the second client as bounds.md says."""
    with bounded(tmp_path / "cluster", node="simulated") as victim:
        start = victim.rss_mib()
        suite, figures, covered = attacked(victim, LONG)
        whole = victim.rss_mib() - start
    names = {f"{info.resource}/{sub.name}" for info in resources() for sub in info.subresources}
    names |= {info.resource for info in resources()}
    bounds = {payload.bound for payload in (*QUERIES, *BODIES, *PATCHES)}
    roles = {*ROLES, ADMINISTRATOR, ACCOUNT}
    assert {(role, what) for role in roles for what in names | bounds} <= covered
    figure("requests", sum(suite.sent.values()))
    figure("roles", len(roles))
    figure("bounds", len(bounds))
    figure("resources and subresources", len(names))
    figure("answers", " ".join(f"{code}:{count}" for code, count in sorted(suite.answers.items())))
    figure("worst stall", f"{max(figure.turn_ms for figure in figures):.0f} ms")
    figure("worst growth", f"{max(figure.peak_mib for figure in figures):.0f} MiB")
    figure("kept of one part", f"{max(figure.kept_mib for figure in figures):.0f} MiB")
    figure("kept of all", f"{whole:.0f} MiB")
    figure("second client p99", f"{max(figure.p99_ms for figure in figures):.0f} ms")
