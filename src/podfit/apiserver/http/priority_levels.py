"""Priority levels and flows: a light form of API priority and fairness. Pure; `flow_control` waits.

Each request belongs to a level, by who asks for what, and within it to a flow, which is the user. A level has seats
(requests under way), a number of starts for each turn of the server's event loop, and queues of bounded length, one a
flow, that are served in turns. The levels are upstream's; the numbers are for one process with one event loop, whose
scarce good is the loop's time: a user who sends as fast as two hundred connections can still starts only a few requests
a turn, and what the cluster itself needs is served between them.
"""

from collections.abc import Collection
from enum import Enum

import msgspec

MASTERS, NODES = "system:masters", "system:nodes"
SERVICE_ACCOUNTS, KUBE_SYSTEM = "system:serviceaccounts", "system:serviceaccounts:kube-system"
CONTROL = ("system:kube-controller-manager", "system:kube-scheduler")
AUTHENTICATED = "system:authenticated"
PROBES = ("/healthz", "/livez", "/readyz")
_PROBES = tuple(probe.removeprefix("/") for probe in PROBES)


class Level(msgspec.Struct, frozen=True):
    """`seats` 0 is no limit at all. `waiting` is how many requests of one flow may wait, `watches` how many streams of
    one user may be open."""

    name: str
    seats: int = 0
    starts: int = 0
    waiting: int = 0
    watches: int = 0
    urgent: bool = False
    """What the cluster lives by: while such a request is under way, the other levels start one request a turn."""


EXEMPT = Level("exempt")
NODE_HIGH = Level("node-high", seats=256, starts=64, waiting=256, urgent=True)
SYSTEM = Level("system", seats=256, starts=64, waiting=256, urgent=True)
LEADER_ELECTION = Level("leader-election", seats=32, starts=16, waiting=64, urgent=True)
WORKLOAD_HIGH = Level("workload-high", seats=256, starts=32, waiting=256, urgent=True)
WORKLOAD_LOW = Level("workload-low", seats=96, starts=6, waiting=1024, watches=2000)
GLOBAL_DEFAULT = Level("global-default", seats=48, starts=2, waiting=1024, watches=1000)
CATCH_ALL = Level("catch-all", seats=8, starts=1, waiting=1024, watches=50)
LEVELS = (EXEMPT, NODE_HIGH, SYSTEM, LEADER_ELECTION, WORKLOAD_HIGH, WORKLOAD_LOW, GLOBAL_DEFAULT, CATCH_ALL)
LONGEST_WAIT = 15.0  # seconds in a queue


class Turn(Enum):
    GO = "go"
    WAIT = "wait"
    REFUSE = "refuse"


def level_of(user: str, groups: Collection[str], *, resource: str, path: str) -> Level:
    """`resource` is what is asked for, empty for a path that is none."""
    if MASTERS in groups or _is_probe(path):
        return EXEMPT
    if NODES in groups:
        return NODE_HIGH if resource in ("nodes", "leases") else SYSTEM
    if user in CONTROL or KUBE_SYSTEM in groups or user.startswith("system:podfit:"):
        return LEADER_ELECTION if resource == "leases" else WORKLOAD_HIGH
    if SERVICE_ACCOUNTS in groups:
        return WORKLOAD_LOW
    return GLOBAL_DEFAULT if AUTHENTICATED in groups else CATCH_ALL


def _is_probe(path: str) -> bool:
    return path.startswith(PROBES) and path.removeprefix("/").partition("/")[0] in _PROBES


def may_start(level: Level, *, under_way: int, started: int, urgent: bool) -> bool:
    """Whether one more request of the level may begin in this turn of the loop, in which `started` have begun.
    `urgent`: a request of an urgent level is under way."""
    starts = 1 if urgent and not level.urgent else level.starts
    return not level.seats or (under_way < level.seats and started < starts)


def judge(level: Level, *, under_way: int, started: int, waiting: int, urgent: bool = False) -> Turn:
    """What becomes of a request that comes now; `waiting` counts its own flow's queue."""
    if may_start(level, under_way=under_way, started=started, urgent=urgent) and (not level.seats or not waiting):
        return Turn.GO
    return Turn.WAIT if waiting < level.waiting else Turn.REFUSE
