"""Metadata of many entries is checked in time linear in them."""

from collections.abc import Callable
from functools import partial

import pytest

from podfit.api.core.v1.config.types import ConfigMap
from podfit.api.meta.v1.types import ObjectMeta, OwnerReference
from podfit.api.meta.validation.metadata import validate_successor
from podfit.apiserver.duplicate_owners import SENT, with_owners_once
from support.turns import growth

COUNT, TIMES = 3_000, 10
"""30,000 are as many values as a custom resource may have. Compared with one another they take ten seconds and more."""


def _finalizers(prefix: str, count: int, *, deleted: bool = True) -> ObjectMeta:
    names = tuple(f"{prefix}/{number}" for number in range(count))
    return ObjectMeta(name="a", finalizers=names, deletion_timestamp="2026-01-02T03:04:05Z" if deleted else None)


def _refused(count: int) -> None:
    errors = validate_successor(_finalizers("b", count), _finalizers("a", count))
    assert ["found new finalizers" in error.detail for error in errors] == [True]


def _owned(count: int) -> None:
    owners = tuple(
        OwnerReference(api_version="v1", kind="Pod", name="a", uid=str(number % (count - 1))) for number in range(count)
    )
    once, warnings = with_owners_once(ConfigMap(metadata=ObjectMeta(name="a", owner_references=owners)), SENT)
    assert once.metadata.owner_references == owners[:-1]
    assert warnings == [SENT + "0"]


@pytest.mark.parametrize("check", [_refused, _owned])
def test_time_is_linear(check: Callable[[int], None]) -> None:
    assert growth(lambda count: partial(check, count), COUNT, times=TIMES) < TIMES**1.5
