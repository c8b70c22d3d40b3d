"""The difference of two statuses, applied, gives the second one; and what others wrote meanwhile survives."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from podfit.api.core.v1.pods.containers import ResourceRequirements
from podfit.api.core.v1.pods.types import PodCondition, PodIP, PodStatus
from podfit.api.meta import codec
from podfit.apiserver.registry.patch.strategic import apply
from podfit.core.quantity import Quantity
from podfit.kubelet.status.patch import status_patch

amounts = st.dictionaries(st.sampled_from(["cpu", "memory"]), st.integers(1, 3).map(Quantity.of), max_size=2)
conditions = st.lists(
    st.builds(
        PodCondition,
        type=st.sampled_from("ABC"),
        status=st.sampled_from(["True", "False"]),
        reason=st.sampled_from(["", "why"]),
        last_transition_time=st.none(),
    ),
    max_size=3,
    unique_by=lambda condition: condition.type,
).map(tuple)
statuses = st.builds(
    PodStatus,
    phase=st.sampled_from(["Pending", "Running"]),
    message=st.sampled_from(["", "text"]),
    conditions=conditions,
    allocated_resources=amounts,
    resources=st.none() | st.builds(ResourceRequirements, limits=amounts, requests=amounts),
    pod_ips=st.lists(st.builds(PodIP, ip=st.sampled_from(["a", "b"])), max_size=2, unique_by=lambda i: i.ip).map(tuple),
)


def merged(status: dict[str, Any], patch: dict[str, Any]) -> Any:
    """As the API server does."""
    return apply(status, patch, PodStatus)


@given(statuses, statuses)
def test_the_patch_leads_from_one_status_to_the_other(old: PodStatus, new: PodStatus) -> None:
    patch = status_patch(old, new)
    found = codec.convert(merged(codec.to_dict(old), patch), PodStatus)
    assert status_patch(found, new) == {}
    assert bool(patch) == (status_patch(new, old) != {})


def test_equal_statuses_need_no_patch() -> None:
    assert status_patch(PodStatus(phase="Running"), PodStatus(phase="Running")) == {}


def test_a_foreign_condition_that_came_meanwhile_survives() -> None:
    ready = PodCondition(type="Ready", status="True")
    patch = status_patch(PodStatus(), PodStatus(conditions=(ready,)))
    theirs = codec.to_dict(PodStatus(conditions=(PodCondition(type="example.com/x", status="True"),)))
    assert {condition["type"] for condition in merged(theirs, patch)["conditions"]} == {"example.com/x", "Ready"}


def test_what_the_server_owns_is_never_sent() -> None:
    old, new = PodStatus(qos_class="Burstable"), PodStatus(phase="Running")
    assert status_patch(old, new) == {"phase": "Running"}


def test_what_the_statuses_share_is_not_coded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a running pod's status nearly everything stays in a resize."""
    coded: list[PodStatus] = []

    def plain(status: PodStatus) -> object:
        coded.append(status)
        return codec.document_of(status)

    monkeypatch.setattr(codec, "plain", plain)
    shared = PodStatus(phase="Running", pod_ip="a", conditions=(PodCondition(type="A"),), qos_class="Burstable")
    new = replace(shared, observed_generation=2, qos_class="Guaranteed")
    assert status_patch(shared, new) == {"observedGeneration": 2}
    assert coded == [PodStatus(), PodStatus(observed_generation=2)]


def test_an_amount_that_is_written_otherwise_is_told_with_what_else_changed() -> None:
    old, new = (PodStatus(allocated_resources={"memory": Quantity.parse(text)}) for text in ("1Gi", "1073741824"))
    assert status_patch(old, new) == {}
    patch = status_patch(old, replace(new, observed_generation=2))
    assert patch == {"observedGeneration": 2, "allocatedResources": {"memory": "1073741824"}}
