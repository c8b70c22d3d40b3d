"""What may have been meant by something that is not a quantity."""

import pytest

from podfit.core.nearest_quantity import nearest
from podfit.core.quantity import Quantity


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("512MB", ("512M", "512Mi")),
        ("512 mb", ("512M", "512Mi")),
        ("1.5gb", ("1.5G", "1.5Gi")),
        ("512mib", ("512Mi",)),
        ("2 gigabytes", ("2G", "2Gi")),
        ("64kib", ("64Ki",)),
        ("100 bytes", ("100",)),
        ("lots", ()),
        ("", ()),
        ("-5MB", ()),
        ("1" * 40 + "MB", ()),
        ("5 parsecs", ()),
    ],
)
def test_memory(text: str, near: tuple[str, ...]) -> None:
    assert nearest(text, memory=True) == near


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("½", ("0.5",)),
        ("0,5", ("0.5",)),
        ("2 cores", ("2",)),
        ("500 millicores", ("500m",)),
        ("1½", ()),
        ("50%", ()),
        ("٣", ("3",)),
        ("x" * 10_000_000, ()),
    ],
)
def test_cpu(text: str, near: tuple[str, ...]) -> None:
    assert nearest(text, memory=False) == near


@pytest.mark.parametrize("text", ["512MB", "1 gigabyte", "3 TiB", "5kb"])
def test_what_is_proposed_is_a_quantity(text: str) -> None:
    assert all(str(Quantity.parse(suggestion)) for suggestion in nearest(text, memory=True))
