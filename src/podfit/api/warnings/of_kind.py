"""Warnings about objects that make no pods: nothing that is wrong, but little that can be meant."""

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any

from podfit.api.core.v1.config.types import ServiceAccount
from podfit.api.meta.base import Object

_ENFORCED = "kubernetes.io/enforce-mountable-secrets"
_STORAGE, _ADDRESSES = "podfit.api.warnings.storage", "podfit.api.warnings.addresses"
_MODULES = {
    "podfit.api.core.v1.config.types": "podfit.api.warnings.config",
    "podfit.api.core.v1.nodes.types": _STORAGE,
    "podfit.api.core.v1.persistentvolumes.claims": _STORAGE,
    "podfit.api.core.v1.persistentvolumes.types": _STORAGE,
    "podfit.api.core.v1.services.types": _ADDRESSES,
    "podfit.api.discovery.v1.types": _ADDRESSES,
    "podfit.api.networking.v1.types": _ADDRESSES,
    "podfit.api.node.v1.types": _STORAGE,
    "podfit.api.storage.v1.types": _STORAGE,
}
"""Modules of warnings, by the module of their kinds; each waits for the first object."""


def of_kind(new: Any, old: Any) -> Iterable[str]:
    """Of an object that is `new`, or is to replace `old`."""
    if isinstance(new, ServiceAccount):
        return _of_account(new, old)
    module = _MODULES.get(type(new).__module__)
    if module is None:
        return ()
    found: dict[type[Object], Callable[[Any, Any], Iterator[str]]]
    found = import_module(module).WARNINGS
    return found[type(new)](new, old) if type(new) in found else ()


def _of_account(new: ServiceAccount, old: ServiceAccount | None) -> Iterator[str]:
    """Only who sets the annotation is told."""
    if _ENFORCED in new.metadata.annotations and (old is None or _ENFORCED not in old.metadata.annotations):
        text = "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
        yield f"metadata.annotations[{_ENFORCED}]: {text}"
