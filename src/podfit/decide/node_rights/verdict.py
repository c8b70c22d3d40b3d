"""Verdicts on a kubelet's writes; None is an admitted one."""

import msgspec


class NotPermitted(msgspec.Struct, frozen=True):
    """Becomes 403 `RESOURCE "NAME" is forbidden: TEXT`."""

    text: str


class Missing(msgspec.Struct, frozen=True):
    """Becomes 404 `KIND "NAME" not found`: an object that the decision depends on."""

    kind: str
    name: str


Verdict = NotPermitted | Missing | None
