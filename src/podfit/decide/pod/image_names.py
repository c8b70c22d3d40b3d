"""Image references: whether a text is one, and whether its tag may move."""

import re
from typing import Literal

Policy = Literal["Always", "IfNotPresent", "Never"]

_REPOSITORY = re.compile(
    r"^(?:(?P<host>(?:localhost|[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+|[A-Za-z0-9-]+(?=:\d))(?::\d+)?)/)?"
    r"(?P<path>[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*)*)$"
)
_TAG = re.compile(r"^[\w][\w.-]{0,127}$")
_DIGEST = re.compile(r"^[A-Za-z][\w]*(?:[-_+.][A-Za-z][\w]*)*:[0-9a-fA-F]{32,}$")


def split(image: str) -> tuple[str, str, str]:
    """Repository, tag and digest; what is not there is empty."""
    name, _, digest = image.partition("@")
    head, colon, tag = name.rpartition(":")
    if not colon or "/" in tag:
        return name, "", digest
    return head, tag, digest


def problem(image: str) -> str:
    """Why this is no image reference, in upstream's words; empty when it is one."""
    repository, tag, digest = split(image)
    if _REPOSITORY.match(repository) and (not tag or _TAG.match(tag)) and (not digest or _DIGEST.match(digest)):
        return ""
    reason = "invalid reference format"
    first = repository.partition(":")[0]
    if first != first.lower() and _REPOSITORY.match(first.lower()):
        name = first if "/" in first else f"library/{first}"
        reason += f": repository name ({name}) must be lowercase"
    return f'Failed to apply default image tag "{image}": couldn\'t parse image name "{image}": {reason}'


def pull_policy(image: str, policy: str) -> Policy:
    """What is asked for, or Always for `latest` and IfNotPresent for a tag or digest that stays."""
    if policy == "Always":
        return "Always"
    if policy == "Never":
        return "Never"
    if policy == "IfNotPresent":
        return "IfNotPresent"
    _, tag, digest = split(image)
    return "Always" if not digest and tag in ("", "latest") else "IfNotPresent"
