"""Rules of namespaces: finalizers, and the phase that goes with a deletion."""

from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.meta.validation import names
from podfit.api.meta.validation.metadata import standard_finalizer, validate_meta_update
from podfit.core.fields import FieldError, invalid


def validate_namespace(namespace: Namespace) -> list[FieldError]:
    return [
        error
        for name in namespace.spec.finalizers
        for error in (*_qualified(name, "spec.finalizers"), *standard_finalizer(name, "spec.finalizers"))
    ]


def _qualified(name: str, path: str) -> list[FieldError]:
    return [invalid(path, name, text) for text in names.qualified(name)]


def validate_namespace_update(_new: Namespace, _old: Namespace) -> list[FieldError]:
    """Nothing besides metadata: the finalizers of its spec are written by `finalize`."""
    return []


def validate_namespace_finalizers(new: Namespace, old: Namespace) -> list[FieldError]:
    errors = validate_meta_update(new.metadata, old.metadata)
    for index, name in enumerate(new.spec.finalizers):
        path = f"spec.finalizers[{index}]"
        errors += _qualified(name, path) + standard_finalizer(name, path)
    return errors


def validate_namespace_status(new: Namespace, _old: Namespace) -> list[FieldError]:
    gone = new.metadata.deletion_timestamp is not None
    phase, word = ("Terminating", "not empty") if gone else ("Active", "empty")
    if new.status.phase == phase:
        return []
    return [invalid("status.Phase", new.status.phase, f"may only be '{phase}' if `deletionTimestamp` is {word}")]
