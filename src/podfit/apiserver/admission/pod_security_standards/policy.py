"""The policy of a namespace's labels: a level and a version each for enforce, audit and warn."""

import re
from collections.abc import Mapping
from typing import Literal

import msgspec

from podfit.core.fields import FieldError, invalid

PREFIX = "pod-security.kubernetes.io/"
Level = Literal["privileged", "baseline", "restricted"]
LEVELS: tuple[Level, ...] = ("privileged", "baseline", "restricted")  # from lax to strict
LATEST = "latest"
_VERSION = re.compile(r"v1\.(0|[1-9][0-9]*)")
_HIGHEST_NUMBER = 2**63 - 1


class LevelVersion(msgspec.Struct, frozen=True):
    level: Level = "privileged"
    minor: int | None = None
    """Of version 1; None is the latest."""

    def __str__(self) -> str:
        return f"{self.level}:{LATEST if self.minor is None else f'v1.{self.minor}'}"


class Policy(msgspec.Struct, frozen=True):
    enforce: LevelVersion = LevelVersion()
    audit: LevelVersion = LevelVersion()
    warn: LevelVersion = LevelVersion()


PRIVILEGED = Policy()
"""Of a namespace without labels."""


def policy_of(labels: Mapping[str, str]) -> tuple[Policy, list[FieldError]]:
    """The policy that counts, and what is wrong with the labels.

    A bad level counts as restricted for enforce and as privileged for audit and warn; a bad version as the latest.
    Without a label of its own, warn is as strict as a good enforce label.
    """
    for label in labels:
        if label.startswith(PREFIX):
            break
    else:
        return PRIVILEGED, []
    errors: list[FieldError] = []
    enforce = _mode("enforce", labels, errors, bad="restricted")
    audit = _mode("audit", labels, errors, bad="privileged")
    warn = _mode("warn", labels, errors, bad="privileged")
    if PREFIX + "warn" not in labels and labels.get(PREFIX + "enforce") in LEVELS[1:]:
        minor = warn.minor if PREFIX + "warn-version" in labels else enforce.minor
        warn = LevelVersion(enforce.level, minor)
    return Policy(enforce, audit, warn), errors


def stricter(one: Level, other: Level) -> bool:
    return LEVELS.index(one) > LEVELS.index(other)


def _mode(mode: str, labels: Mapping[str, str], errors: list[FieldError], *, bad: Level) -> LevelVersion:
    level: Level = "privileged"
    if (name := labels.get(PREFIX + mode)) is not None:
        known = next((known for known in LEVELS if known == name), None)
        level = known or bad
        if known is None:
            errors.append(_invalid(mode, name, f"must be one of {', '.join(LEVELS)}"))
    minor = None
    if (version := labels.get(f"{PREFIX}{mode}-version")) not in (None, LATEST):
        found = _VERSION.fullmatch(version)
        if found and int(found[1]) <= _HIGHEST_NUMBER:
            minor = int(found[1])
        else:
            errors.append(_invalid(f"{mode}-version", version, 'must be "latest" or "v1.x"'))
    return LevelVersion(level, minor)


def _invalid(label: str, value: str, detail: str) -> FieldError:
    return invalid(f"metadata.labels[{PREFIX}{label}]", value, detail)
