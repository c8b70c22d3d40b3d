"""The short ways through a write end where the long ones do: what is skipped is what would have changed nothing."""

import json
from itertools import count
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from podfit.api.core.v1.limits.types import ResourceQuota
from podfit.api.core.v1.pods.containers import Container, EnvVar, EnvVarSource, ResourceRequirements
from podfit.api.core.v1.pods.defaults import default_pod
from podfit.api.core.v1.pods.sizes import differ_by_size
from podfit.api.core.v1.pods.types import Pod, PodCondition, PodSpec, PodStatus
from podfit.api.core.v1.pods.validation.pod import validate_pod_spec
from podfit.api.core.v1.pods.validation.volumes import validate_volumes
from podfit.api.core.v1.pods.volumes import DownwardAPIVolumeFile, DownwardAPIVolumeSource, Volume
from podfit.api.core.v1.references import ResourceFieldSelector
from podfit.api.meta import codec
from podfit.api.meta.v1.types import ObjectMeta
from podfit.api.registry import info_for
from podfit.apiserver.registry import stored
from podfit.apiserver.registry.apply.compare import changed, compared, existing, fields_of, gone, surviving
from podfit.apiserver.registry.apply.differing import changes, differing
from podfit.apiserver.registry.apply.sets import contains, meets, union, without
from podfit.apiserver.registry.patch import mergepatch, strategic
from podfit.apiserver.registry.patch.struct_patch import Unusual, patched
from podfit.apiserver.request.canonical import canonical
from podfit.apiserver.request.documents import parse_json
from podfit.core.features import DEFAULT_GATES
from podfit.core.fields import FieldError
from podfit.core.quantity import Quantity
from podfit.store.protocol import Record

AMOUNTS = st.sampled_from(("100m", "0.1", "1Gi", "1073741824", "2"))
RESOURCES = st.dictionaries(st.sampled_from(("cpu", "memory")), AMOUNTS.map(Quantity.parse), max_size=2)
ENV = st.lists(
    st.builds(
        EnvVar,
        name=st.sampled_from("ABC"),
        value=st.sampled_from(("", "x", "y")),
        value_from=st.none() | st.just(EnvVarSource(resource_field_ref=ResourceFieldSelector(resource="limits.cpu"))),
    ),
    max_size=3,
).map(tuple)
CONTAINERS = st.lists(
    st.builds(
        Container,
        name=st.sampled_from(("app", "side")),
        image=st.sampled_from(("", "i")),
        env=ENV,
        command=st.lists(st.sampled_from("ab"), max_size=2).map(tuple),
        resources=st.builds(ResourceRequirements, requests=RESOURCES, limits=RESOURCES),
    ),
    max_size=3,
).map(tuple)
PODS = st.builds(
    Pod,
    metadata=st.builds(
        ObjectMeta,
        labels=st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"), max_size=2),
        finalizers=st.lists(st.sampled_from(("a/b", "c/d")), max_size=2, unique=True).map(tuple),
    ),
    spec=st.builds(PodSpec, containers=CONTAINERS, node_name=st.sampled_from(("", "n1"))),
)


STATUSES = st.builds(
    PodStatus,
    phase=st.sampled_from(("", "Running")),
    conditions=st.lists(
        st.builds(PodCondition, type=st.sampled_from("ABC"), status=st.sampled_from(("True", "False"))), max_size=3
    ).map(tuple),
    resources=st.none() | st.builds(ResourceRequirements, limits=RESOURCES),
)
LIVING_PODS = st.builds(lambda pod, status: replace(pod, status=status), PODS, STATUSES)


def _plain(tree: dict[str, Any]) -> dict[str, Any]:
    """A set as the server writes it: `.` is empty, and only beside others."""
    kept = {name: {} if name == "." else _plain(inner) for name, inner in tree.items()}
    return {} if kept.keys() == {"."} else kept


def _set_of(tree: dict[str, Any]) -> dict[str, Any]:
    """At the top, where the object itself stands, nothing is a member."""
    return {name: _plain(inner) for name, inner in tree.items() if name != "."}


TREES: Any = st.recursive(
    st.just({}), lambda inner: st.dictionaries(st.sampled_from((".", "f:a", "f:b")), inner, max_size=3), max_leaves=8
).map(_set_of)


@given(PODS, PODS)
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_what_differs_is_as_different_as_the_whole(old: Pod, new: Pod) -> None:
    before, after = map(codec.to_dict, differing(old, new))
    assert compared(before, after, Pod) == compared(codec.to_dict(old), codec.to_dict(new), Pod)


@given(LIVING_PODS, LIVING_PODS)
@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
def test_structs_tell_what_changed_as_their_documents_do(old: Pod, new: Pod) -> None:
    assume(old.spec.containers and new.spec.containers)  # none are told as upstream does
    before, after = codec.to_dict(old), codec.to_dict(new)
    assert changes(old, new) == (changed(before, after, Pod), gone(before, after, Pod))


@given(PODS)
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
def test_a_document_is_the_same_without_a_text_between(pod: Pod) -> None:
    assert codec.document_of(pod) == codec.to_dict(pod)


@given(PODS, PODS)
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
def test_one_comparison_says_what_came_and_whether_something_went(old: Pod, new: Pod) -> None:
    before, after = codec.to_dict(old), codec.to_dict(new)
    assert compared(before, after, Pod)[1] == bool(gone(before, after, Pod))


@given(PODS, PODS)
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_what_survives_a_change_is_what_the_whole_object_still_has(old: Pod, new: Pod) -> None:
    owned = fields_of(codec.to_dict(old), Pod)
    before, after = map(codec.to_dict, differing(old, new))
    assert surviving(owned, gone(before, after, Pod)) == existing(owned, codec.to_dict(new), Pod)


def test_amounts_are_compared_as_they_are_written() -> None:
    def pod(amount: str, image: str) -> Pod:
        resources = ResourceRequirements(requests={"memory": Quantity.parse(amount)})
        return Pod(spec=PodSpec(containers=(Container(name="app", image=image, resources=resources),)))

    def changed_in(old: Pod, new: Pod) -> Any:
        return changes(old, new)[0]["f:spec"]["f:containers"]['k:{"name":"app"}']

    amount: dict[str, Any] = {"f:resources": {"f:requests": {"f:memory": {}}}}
    assert changed_in(pod("1Gi", "a"), pod("1073741824", "a")) == amount
    assert changed_in(pod("1Gi", "a"), pod("1073741824", "b")) == amount | {"f:image": {}}
    assert changed_in(pod("1Gi", "a"), pod("1Gi", "b")) == {"f:image": {}}
    _, after = differing(pod("1Gi", "a"), pod("1073741824", "a"))
    assert after.spec.containers[0].resources.requests == {"memory": Quantity.parse("1Gi")}


def _with_nulls(document: Any, places: Any) -> Any:
    """The document as a patch that takes away some of what it names."""
    if not isinstance(document, dict):
        return [_with_nulls(item, places) for item in document] if isinstance(document, list) else document
    return {
        name: None
        if name not in ("name", "type") and places.draw(st.integers(0, 9)) == 0
        else _with_nulls(value, places)
        for name, value in document.items()
    }


@given(LIVING_PODS, LIVING_PODS, st.booleans(), st.data())
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
def test_a_patched_object_is_the_patched_document(old: Pod, wanted: Pod, merge_lists: bool, data: Any) -> None:
    document = codec.to_dict(wanted)
    patch = _with_nulls({name: document[name] for name in ("metadata", "spec", "status") if name in document}, data)
    try:
        made = patched(old, patch, merge_lists=merge_lists)
    except Unusual:
        assume(False)
    whole = codec.to_dict(old)
    outcome = strategic.apply(whole, patch, Pod) if merge_lists else mergepatch.apply(whole, patch)
    assert codec.encode(made) == codec.encode(codec.convert(outcome, Pod))


CONDITION = st.fixed_dictionaries({"type": st.sampled_from("ABCD"), "status": st.sampled_from(("True", "False"))})
ITEM = CONDITION | st.fixed_dictionaries(
    {"type": st.sampled_from("ABCD"), "$patch": st.sampled_from(("delete", "delete", "delete", "merge", "replace"))}
)
ORDER = st.lists(st.sampled_from("ABCD"), max_size=4).map(lambda kinds: [{"type": kind} for kind in kinds])


@given(LIVING_PODS, st.lists(ITEM, max_size=3), st.none() | ORDER)
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
def test_items_that_go_and_their_order_are_those_of_the_document(
    old: Pod, items: list[Any], order: list[Any] | None
) -> None:
    """As every kubelet writes its conditions."""
    status: dict[str, Any] = {"conditions": items}
    patch = {"status": status if order is None else {"$setElementOrder/conditions": order, **status}}
    try:
        made = patched(old, patch, merge_lists=True)
    except Unusual:
        assume(False)
    outcome = strategic.apply(codec.to_dict(old), patch, Pod)
    assert codec.encode(made) == codec.encode(codec.convert(outcome, Pod))


@pytest.mark.parametrize(
    "status",
    [
        {"$setElementOrder/conditions": [{"type": "B"}, {"type": "A"}], "conditions": [{"type": "A"}, {"type": "B"}]},
        {"$setElementOrder/conditions": [{"type": "B"}], "conditions": [{"type": "A"}]},
        {"$setElementOrder/conditions": [], "conditions": [{"type": "A"}]},
        {"$setElementOrder/conditions": {}, "conditions": [{"type": "A"}]},
        {"$setElementOrder/conditions": [{"type": "A"}]},
        {"$setElementOrder/conditions": [{"type": "A"}], "conditions": None},
        {"$setElementOrder/phase": [{"type": "A"}], "phase": "Running"},
        {"$setElementOrder": [], "conditions": [{"type": "A"}]},
        {"$patch": "replace", "phase": "Running"},
        {"$retainKeys": ["phase"], "phase": "Running"},
        {"conditions": [{"$patch": "replace"}, {"type": "A"}]},
        {"conditions": [{"$patch": "delete"}]},
        {"allocatedResources": {"$patch": "replace", "cpu": "1"}},
        {"hostIPs": [{"$patch": "replace"}, {"ip": "192.0.2.2"}]},
        {"containerStatuses": [{"$patch": "replace"}, {"name": "app"}]},
    ],
)
def test_other_directives_are_left_to_the_whole_document(status: dict[str, Any]) -> None:
    old = Pod(status=PodStatus(conditions=(PodCondition(type="A"), PodCondition(type="B"))))
    with pytest.raises(Unusual):
        patched(old, {"status": status}, merge_lists=True)


def test_a_patch_of_a_kubelet_leaves_the_conditions_that_it_only_orders() -> None:
    conditions = (PodCondition(type="Resizing", status="True"), PodCondition(type="Ready", status="True"))
    order = [{"type": "Ready"}, {"type": "New"}]
    items = [{"type": "New", "status": "True"}, {"type": "Resizing", "$patch": "delete"}]
    patch = {"status": {"$setElementOrder/conditions": order, "conditions": items}}
    made = patched(Pod(status=PodStatus(conditions=conditions)), patch, merge_lists=True).status.conditions
    assert [condition.type for condition in made] == ["Ready", "New"]
    assert made[0] is conditions[1]


def test_a_patch_leaves_what_it_does_not_change_the_very_same_part() -> None:
    containers = (Container(name="app", image="a", env=(EnvVar(name="A", value="1"),)), Container(name="side"))
    old = Pod(metadata=ObjectMeta(labels={"a": "b"}), spec=PodSpec(containers=containers))
    patch = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "app", "image": "b", "env": [{"name": "A", "value": "1"}]}, {"name": "side"}]},
    }
    made = patched(old, patch, merge_lists=True)
    assert made.metadata is old.metadata
    assert made.spec.containers[0].env is containers[0].env
    assert made.spec.containers[1] is containers[1]
    assert patched(old, {"spec": {"containers": [{"name": "app", "image": "a"}]}}, merge_lists=True) is old


@pytest.mark.parametrize("patch", [{"spec": None}, {"metadata": {"labels": None}}, {"spec": {"containers": None}}])
@pytest.mark.parametrize("merge_lists", [True, False])
def test_a_null_in_a_patch_takes_away(patch: dict[str, Any], merge_lists: bool) -> None:
    old = Pod(metadata=ObjectMeta(labels={"a": "b"}), spec=PodSpec(containers=(Container(name="app"),), node_name="n"))
    made = patched(old, patch, merge_lists=merge_lists)
    assert made == codec.convert(strategic.apply(codec.to_dict(old), patch, Pod), Pod) != old


@pytest.mark.parametrize(
    "patch",
    [
        {"spec": {"containers": [{"name": "app"}, {"name": "app"}]}},
        {"spec": {"containers": [{"image": "i"}]}},
        {"spec": {"containers": [{"name": True}]}},
        {"metadata": {"finalizers": ["a/b"]}},
        {"metadata": {"labels": {"a": {"b": "c"}}}},
    ],
)
def test_what_lists_and_maps_cannot_tell_is_left_to_the_whole_document(patch: dict[str, Any]) -> None:
    with pytest.raises(Unusual):
        patched(Pod(spec=PodSpec(containers=(Container(name="app"),))), patch, merge_lists=True)


@given(TREES, TREES)
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_sets_that_hold_or_miss_each_other_stay_as_they_are(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert contains(one, other) == (union(one, other) == one)
    assert meets(one, other) == (without(one, other) != one)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(("a", "b", ":", "a\\\\", "\\u0061")),
            st.sampled_from(("1", '":"', '"\\":"', '"\\u0022:"', '":x"', '{"a":1}', '{"a":1,"a":":"}')),
            st.sampled_from((":", " :", ": ")),
        ),
        max_size=4,
    )
)
@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
def test_members_that_come_twice_are_found(members: list[tuple[str, str, str]]) -> None:
    text = "{" + ",".join(f'"{name}"{colon}{value}' for name, value, colon in members) + "}"
    names = [json.loads(f'"{name}"') for name, _, _ in members]
    twice = len(set(names)) < len(names) or '"a":1,"a"' in text
    assert bool(parse_json(text.encode())[1]) == twice


def test_a_passed_check_is_not_passed_by_an_equal_amount_in_other_words() -> None:
    def volumes(divisor: str) -> tuple[Volume, ...]:
        ref = ResourceFieldSelector(container_name="app", resource="limits.memory", divisor=Quantity.parse(divisor))
        item = DownwardAPIVolumeFile(path="memory", resource_field_ref=ref)
        return (Volume(name="info", downward_api=DownwardAPIVolumeSource(default_mode=420, items=(item,))),)

    assert validate_volumes(volumes("1Ki"), "spec.volumes")[1] == []
    assert validate_volumes(volumes("1Ki"), "spec.volumes")[1] == []
    assert validate_volumes(volumes("1024"), "spec.volumes")[1] != []
    assert validate_volumes(volumes("1Ki"), "spec.volumes")[1] == []
    wrong = replace(volumes("1Ki")[0], name="")
    assert [volume.field for volume in validate_volumes((wrong,), "a")[1]] == ["a[0].name"]
    assert [volume.field for volume in validate_volumes((wrong,), "b")[1]] == ["b[0].name"]


UIDS = count(1)
"""No two objects of a store are the same; of a pod that is drawn twice the first decoding would be told."""


@given(PODS)
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
def test_what_is_written_is_remembered_as_it_would_be_decoded(pod: Pod) -> None:
    """By everybody who is told of it: those who read it, and those who watch in the same process."""
    info = info_for(Pod)
    uid = str(UUID(int=next(UIDS)))
    meta = replace(pod.metadata, name="p", namespace="default", uid=uid, resource_version="6")
    written = replace(pod, metadata=meta)
    record = Record(stored.key(info, "default", "p"), stored.encoded(written), 3, 7)
    stored.remember(info, record.value, written)
    found = stored.decoded(info, record)
    assert found.spec is written.spec
    assert codec.decode_shared(stored.unended(info, record), Pod) is found
    assert found == codec.decode(stored.whole(info, record), Pod)
    assert codec.encode(found) == codec.encode(codec.decode(stored.whole(info, record), Pod))


def test_amounts_that_the_server_has_summed_are_decoded_again() -> None:
    """A sum may have another form than its text: 1Ki and 1000 make 2024 of a binary form, read as a decimal."""
    info, total = info_for(ResourceQuota), Quantity.parse("1Ki") + Quantity.parse("1000")
    quota = ResourceQuota(metadata=ObjectMeta(name="q", namespace="default"))
    quota = replace(quota, status=replace(quota.status, used={"memory": total}))
    record = Record(stored.key(info, "default", "q"), stored.encoded(quota), 3, 7)
    stored.remember(info, record.value, quota)
    used = stored.decoded(info, record).status.used["memory"]
    assert (used, used.format) == (total, Quantity.parse("2024").format)
    assert used.format is not total.format


STATUS = Pod(status=PodStatus(phase="Running", observed_generation=1, start_time="2026-01-02T03:04:05Z"))


@pytest.mark.parametrize(
    "given",
    [
        {"startTime": "2026-01-02T03:04:06Z"},
        {"startTime": "2026-01-02T04:04:06+01:00"},  # told in UTC
        {"startTime": "2026-01-02T03:04:06.5Z"},  # and in whole seconds
        {"observedGeneration": 2**63 - 1},
        {"phase": "Pending", "conditions": [{"type": "Ready", "status": "True", "lastProbeTime": None}]},
        {"conditions": [{"type": "Ready", "lastTransitionTime": "2026-01-02T04:04:06+01:00"}]},
        {"containerStatuses": [{"name": "app", "state": {"running": {"startedAt": "2026-01-02T04:04:06+01:00"}}}]},
    ],
)
def test_a_value_taken_as_it_is_is_the_converted_one(given: dict[str, Any]) -> None:
    outcome = strategic.apply(codec.to_dict(STATUS), {"status": given}, Pod)
    assert patched(STATUS, {"status": given}, merge_lists=True) == codec.convert(canonical(outcome, Pod), Pod) != STATUS


@pytest.mark.parametrize(
    "given",
    [
        {"startTime": "2026-13-02T03:04:05Z"},
        {"startTime": "2026-01-02T24:04:05Z"},
        {"startTime": "yesterday"},
        {"startTime": 1},
        {"observedGeneration": 2**63},
        {"observedGeneration": True},
        {"observedGeneration": "1"},
        {"phase": 1},
        {"containerStatuses": [{"name": "app", "restartCount": 2**31}]},
    ],
)
def test_a_value_that_does_not_fit_is_not_taken(given: dict[str, Any]) -> None:
    with pytest.raises((msgspec.ValidationError, ValueError)):
        patched(STATUS, {"status": given}, merge_lists=True)


def _sized(spec: PodSpec, **sides: dict[str, str]) -> PodSpec:
    """With these amounts in the first container, and all else the very same."""
    requests, limits = (
        {name: Quantity.parse(text) for name, text in sides.get(side, {}).items()} for side in ("requests", "limits")
    )
    first, *others = spec.containers
    return replace(
        spec, containers=(replace(first, resources=ResourceRequirements(requests=requests, limits=limits)), *others)
    )


WEB = default_pod(
    Pod(
        metadata=ObjectMeta(name="web", namespace="default"),
        spec=PodSpec(containers=(Container(name="app", image="i"), Container(name="side", image="i"))),
    ),
    DEFAULT_GATES,
)


def test_what_differs_by_size_is_told_by_what_is_the_very_same() -> None:
    spec, twin = WEB.spec, replace(WEB.spec.containers[0])
    assert differ_by_size(spec, spec)
    assert differ_by_size(_sized(spec, requests={"cpu": "1"}), spec)
    assert differ_by_size(replace(spec, resources=ResourceRequirements()), spec)
    assert not differ_by_size(replace(spec, node_name="n1"), spec)
    assert not differ_by_size(replace(spec, containers=spec.containers[:1]), spec)
    assert not differ_by_size(replace(spec, containers=spec.containers[::-1]), spec)
    assert not differ_by_size(replace(spec, containers=(replace(twin, image="j"), spec.containers[1])), spec)


@pytest.mark.parametrize(
    "sides", [{"limits": {"cpu": "1"}}, {"requests": {"cpu": "100u"}, "limits": {"memory": "1Gi"}}]
)
def test_a_resized_pod_has_the_defaults_of_a_new_one(sides: dict[str, dict[str, str]]) -> None:
    new = replace(WEB, spec=_sized(WEB.spec, **sides))
    assert default_pod(new, DEFAULT_GATES, WEB) == default_pod(new, DEFAULT_GATES) != new


def test_a_resize_of_a_spec_that_passed_is_refused_as_any_other() -> None:
    def errors(spec: PodSpec, before: PodSpec | None) -> list[FieldError]:
        return validate_pod_spec(spec, "spec", DEFAULT_GATES, meta=WEB.metadata, before=before)

    grown = _sized(WEB.spec, requests={"cpu": "1"})
    assert errors(grown, WEB.spec) == errors(grown, grown) == []
    larger = _sized(grown, requests={"cpu": "2"}, limits={"cpu": "1"})
    assert errors(larger, grown) == errors(larger, None) != []
    renamed = replace(grown, node_name="-")
    assert errors(renamed, grown) == errors(renamed, None) != []
    assert errors(_sized(grown, requests={"cpu": "3"}), grown) == []
