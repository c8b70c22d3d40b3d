"""Arithmetic on resource lists."""

from hypothesis import given
from hypothesis import strategies as st

from podfit.core.quantity import ZERO, Quantity
from podfit.core.resources import add, maximum, overcommittable, pod_level, positive, subtract

lists = st.dictionaries(st.sampled_from("abc"), st.integers(-5, 5).map(Quantity.of), max_size=3)


@given(lists, lists)
def test_operations_work_name_by_name_and_leave_their_input_alone(
    left: dict[str, Quantity], right: dict[str, Quantity]
) -> None:
    before = dict(left), dict(right)
    names = left.keys() | right.keys()
    assert add(left, right) == {name: left.get(name, ZERO) + right.get(name, ZERO) for name in names}
    assert subtract(left, right) == {name: left.get(name, ZERO) - right.get(name, ZERO) for name in names}
    largest = maximum(left, right)
    assert largest.keys() == names
    assert all(largest[name] in (left.get(name), right.get(name)) for name in names)
    assert all(largest[name] >= amount for side in (left, right) for name, amount in side.items())
    assert positive(left) == {name: amount for name, amount in left.items() if amount > ZERO}
    assert (left, right) == before


def test_kinds_of_resources() -> None:
    assert [name for name in ("cpu", "hugepages-2Mi", "example.com/gpu") if overcommittable(name)] == ["cpu"]
    assert [name for name in ("memory", "hugepages-1Gi", "ephemeral-storage") if pod_level(name)] == [
        "memory",
        "hugepages-1Gi",
    ]
