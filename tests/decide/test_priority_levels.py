"""Which level a request belongs to, and what a level does with it."""

import pytest

from podfit.apiserver.http.priority_levels import EXEMPT, GLOBAL_DEFAULT, NODE_HIGH, Turn, judge, level_of, may_start

IN = "system:authenticated"


@pytest.mark.parametrize(
    ("user", "groups", "resource", "path", "level"),
    [
        ("root", ("system:masters", IN), "pods", "/api/v1/pods", "exempt"),
        ("system:anonymous", ("system:unauthenticated",), "", "/livez", "exempt"),
        ("system:anonymous", ("system:unauthenticated",), "", "/readyz/ping", "exempt"),
        ("system:anonymous", ("system:unauthenticated",), "", "/livezy", "catch-all"),
        ("system:anonymous", ("system:unauthenticated",), "", "/version", "catch-all"),
        ("system:node:n1", ("system:nodes", IN), "nodes", "", "node-high"),
        ("system:node:n1", ("system:nodes", IN), "leases", "", "node-high"),
        ("system:node:n1", ("system:nodes", IN), "pods", "", "system"),
        ("system:kube-scheduler", (IN,), "leases", "", "leader-election"),
        ("system:kube-controller-manager", (IN,), "pods", "", "workload-high"),
        (
            "system:serviceaccount:kube-system:x",
            ("system:serviceaccounts", "system:serviceaccounts:kube-system", IN),
            "pods",
            "",
            "workload-high",
        ),
        ("system:serviceaccount:default:x", ("system:serviceaccounts", IN), "pods", "", "workload-low"),
        ("jane", (IN,), "pods", "", "global-default"),
    ],
)
def test_levels(user: str, groups: tuple[str, ...], resource: str, path: str, level: str) -> None:
    assert level_of(user, groups, resource=resource, path=path).name == level


FULL, SPENT, LONG = GLOBAL_DEFAULT.seats, GLOBAL_DEFAULT.starts, GLOBAL_DEFAULT.waiting


@pytest.mark.parametrize(
    ("under_way", "started", "waiting", "turn"),
    [
        (0, 0, 0, Turn.GO),
        (FULL - 1, SPENT - 1, 0, Turn.GO),
        (FULL, 0, 0, Turn.WAIT),
        (0, SPENT, 0, Turn.WAIT),
        (0, 0, 1, Turn.WAIT),
        (FULL, 0, LONG - 1, Turn.WAIT),
        (FULL, 0, LONG, Turn.REFUSE),
    ],
)
def test_turns(under_way: int, started: int, waiting: int, turn: Turn) -> None:
    assert judge(GLOBAL_DEFAULT, under_way=under_way, started=started, waiting=waiting) is turn


def test_beside_what_is_urgent_others_start_singly() -> None:
    assert may_start(GLOBAL_DEFAULT, under_way=5, started=0, urgent=True)
    assert not may_start(GLOBAL_DEFAULT, under_way=5, started=1, urgent=True)
    assert may_start(GLOBAL_DEFAULT, under_way=5, started=1, urgent=False)
    assert may_start(NODE_HIGH, under_way=5, started=20, urgent=True)


def test_the_exempt_never_wait_and_nodes_have_more_room() -> None:
    assert judge(EXEMPT, under_way=10**6, started=10**6, waiting=10**6) is Turn.GO
    assert NODE_HIGH.starts > 10 * GLOBAL_DEFAULT.starts
