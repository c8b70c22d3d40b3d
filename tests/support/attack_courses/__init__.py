"""Attacks that take more than one request: seeded courses of the attack suite, by what they attack.

COURSES     against the API server of a `support.bounded.Victim` with a simulated node
APART       against a process of their own
"""

from support.attack_courses import backends, connections, definitions, pods, processes, requests, unreached, workloads
from support.attack_courses.course import Course
from support.attack_courses.processes import Apart

__all__ = ["APART", "COURSES", "Apart", "Course"]

COURSES: tuple[Course, ...] = (
    *requests.COURSES,
    *definitions.COURSES,
    *pods.COURSES,
    *backends.COURSES,
    *connections.COURSES,
    *workloads.COURSES,
    *unreached.COURSES,
)
APART: tuple[Apart, ...] = processes.APART
