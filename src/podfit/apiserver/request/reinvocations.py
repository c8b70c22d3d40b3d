"""Reinvocation of mutating webhooks: which were called for a write, and which have to be called again.

A second round runs when a webhook changed the object. The built-in plugins all see it again; a webhook does only if it
asked for that, was called in the first round, and the object has changed since.
"""

from typing import Any

import msgspec

from podfit.api.meta.base import Object


class Reinvocations(msgspec.Struct):
    second: bool = False
    changed: bool = False
    warnings: list[str] = msgspec.field(default_factory=list)
    namespace: Any = None  # that of a new object, once it was looked up
    _willing: set[str] = msgspec.field(default_factory=set)  # asked, and to be asked again if something changes
    _due: set[str] = msgspec.field(default_factory=set)
    _left: Any = None

    def begin(self, obj: Object) -> None:
        """The webhooks' turn. In the second round the built-in plugins may have changed what webhooks left."""
        if self.second and obj != self._left:
            self._recall()

    def passes_over(self, webhook: str) -> bool:
        return self.second and webhook not in self._due

    def asked(self, webhook: str, *, changed: bool, again: bool) -> None:
        if changed:
            self.changed = True
            self._recall()
        if again:
            self._willing.add(webhook)

    def end(self, obj: Object) -> None:
        self._left = obj

    def _recall(self) -> None:
        self._due |= self._willing
        self._willing = set()
