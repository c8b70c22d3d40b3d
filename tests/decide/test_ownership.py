"""What becomes of an object, by its owners and dependents."""

import pytest

from podfit.api.meta.owners import ObjectIdentity
from podfit.api.meta.v1.types import DeleteOptions, ObjectMeta, OwnerReference
from podfit.decide.workload.ownership import Delete, Forget, Keep, OwnerState, Verdict, blocks, judge, without
from podfit.decide.workload.propagation import wanted_finalizers

SOLID, GONE, WAITING, UNKNOWN = OwnerState.SOLID, OwnerState.DANGLING, OwnerState.WAITING, OwnerState.UNKNOWN


def named(name: str, namespace: str = "") -> ObjectIdentity:
    return ObjectIdentity("", "ConfigMap", namespace, name, name)


def owned(*owners: str, deleting: bool = False, finalizers: tuple[str, ...] = (), block: bool = True) -> ObjectMeta:
    references = tuple(
        OwnerReference(api_version="v1", kind="ConfigMap", name=owner, uid=owner, block_owner_deletion=block)
        for owner in owners
    )
    return ObjectMeta(
        name="x",
        uid="x",
        owner_references=references,
        finalizers=finalizers,
        deletion_timestamp="2026-01-01T00:00:00Z" if deleting else None,
    )


PLAIN = owned("x")
FOREGROUND = owned("x", deleting=True, finalizers=("foregroundDeletion",))


@pytest.mark.parametrize(
    ("owners", "dependents", "finalizers", "verdict"),
    [
        ({}, (), (), Keep()),
        ({"a": SOLID}, (), (), Keep()),
        ({"a": GONE}, (), (), Delete("Background")),
        ({"a": GONE, "b": GONE}, (), (), Delete("Background")),
        ({"a": GONE, "b": SOLID}, (), (), Forget(frozenset({named("a")}))),
        ({"a": WAITING, "b": SOLID}, (), (), Forget(frozenset({named("a")}))),
        ({"a": GONE, "b": UNKNOWN}, (), (), Keep()),
        ({"a": SOLID, "b": UNKNOWN}, (), (), Keep()),
        ({"a": WAITING}, (), (), Delete("Background")),
        ({"a": WAITING}, (PLAIN,), (), Delete("Foreground")),
        ({"a": WAITING}, (PLAIN, FOREGROUND), (), Delete("Foreground", unblock=True)),
        ({"a": GONE}, (PLAIN,), (), Delete("Background")),
        ({"a": GONE}, (), ("orphan",), Delete("Orphan")),
        ({"a": GONE}, (), ("foregroundDeletion",), Delete("Foreground")),
    ],
)
def test_verdicts(
    owners: dict[str, OwnerState], dependents: tuple[ObjectMeta, ...], finalizers: tuple[str, ...], verdict: Verdict
) -> None:
    known = {named(name): owner for name, owner in owners.items()}
    assert judge(owned(*owners, finalizers=finalizers), known, dependents) == verdict
    assert judge(owned(*owners, deleting=True), known, dependents) == Keep()


def test_blocking_and_forgetting() -> None:
    meta = owned("a", "b")
    assert blocks(meta, named("a"))
    assert not blocks(meta, named("c"))
    assert not blocks(meta, named("a", "elsewhere"))
    assert not blocks(owned("a", block=False), named("a"))
    assert [reference.uid for reference in without(meta, {named("a")})] == ["b"]


@pytest.mark.parametrize(
    ("options", "present", "default", "wanted"),
    [
        ({}, (), "Background", ()),
        ({}, (), "Orphan", ("orphan",)),
        ({"propagation_policy": "Background"}, (), "Orphan", ()),
        ({"propagation_policy": "Foreground"}, ("mine",), "Background", ("mine", "foregroundDeletion")),
        ({"propagation_policy": "Orphan"}, ("foregroundDeletion", "mine"), "Background", ("mine", "orphan")),
        ({"propagation_policy": "Background"}, ("orphan", "foregroundDeletion"), "Background", ()),
        ({"orphan_dependents": True}, (), "Background", ("orphan",)),
        ({"orphan_dependents": False}, ("orphan",), "Orphan", ()),
        ({}, ("orphan",), "Background", ("orphan",)),
        ({}, ("foregroundDeletion",), "Orphan", ("foregroundDeletion",)),
    ],
)
def test_what_a_deletion_waits_for(
    options: dict[str, str], present: tuple[str, ...], default: str, wanted: tuple[str, ...]
) -> None:
    assert wanted_finalizers(DeleteOptions(**options), present, default=default) == wanted  # type: ignore[arg-type]  # keywords of several types
