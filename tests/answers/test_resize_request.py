"""What --cpu and --memory mean for a container, by what it has now."""

import re

import msgspec
import pytest

from podfit.answers.plan.amounts import RequestError, parse_amount
from podfit.answers.plan.resize_request import BEFORE, ResizeRequest, apply, from_template, remembered, with_template
from podfit.api.core.v1.limits.types import LimitRange
from podfit.api.core.v1.pods.types import Pod, PodSpec
from podfit.api.meta.codec import convert
from podfit.api.meta.v1.types import ObjectMeta


def pod(*containers: dict, **spec: object) -> Pod:  # type: ignore[type-arg]  # of any kind
    return convert({"metadata": {"name": "web"}, "spec": {"containers": containers, **spec}}, Pod)


def container(name: str = "app", **resources: dict[str, str]) -> dict[str, object]:
    return {"name": name, "image": "i", "resources": resources}


@pytest.mark.parametrize(
    ("requests", "limits", "asked", "after"),
    [
        ("250m", "250m", "500m", ("500m", "500m")),
        ("250m", "1", "500m", ("500m", "2")),
        ("300m", "1", "100m", ("100m", "330m")),
        ("250m", "", "500m", ("500m", "None")),
        ("", "1", "500m", ("500m", "1")),
        ("", "", "500m", ("500m", "None")),
        ("250m", "1", "500m:600m", ("500m", "600m")),
        ("250m", "1", ":2", ("250m", "2")),
        ("250m", "1", "+20%", ("300m", "1200m")),
        ("333m", "", "-10%", ("300m", "None")),
        ("250m", "1", "+50m:-500m", ("300m", "500m")),
        ("250m", "1", ":+50%", ("250m", "1500m")),
        ("250m", "250m", "-50m", ("200m", "200m")),
    ],
)
def test_a_limit_keeps_its_proportion(requests: str, limits: str, asked: str, after: tuple[str, str]) -> None:
    had = container(requests={"cpu": requests} if requests else {}, limits={"cpu": limits} if limits else {})
    new = apply(ResizeRequest({"cpu": parse_amount("--cpu", asked)}), pod(had)).spec.containers[0].resources
    assert (str(new.requests.get("cpu")), str(new.limits.get("cpu"))) == after


def test_memory_in_proportion_is_what_a_person_would_write() -> None:
    had = container(requests={"memory": "300Mi"}, limits={"memory": "1Gi"})
    new = apply(ResizeRequest({"memory": parse_amount("--memory", "100Mi")}), pod(had)).spec.containers[0].resources
    assert str(new.limits["memory"]) == "341Mi"


@pytest.mark.parametrize(
    ("before", "asked", "after"),
    [("256Mi", "+20%", "308Mi"), ("256Mi", "-64Mi", "192Mi"), ("1G", "+1%", "1010M"), ("1000", "+0.5Ki", "1512")],
)
def test_a_share_of_memory_is_rounded_up_to_what_a_person_would_write(before: str, asked: str, after: str) -> None:
    had = container(requests={"memory": before})
    new = apply(ResizeRequest({"memory": parse_amount("--memory", asked)}), pod(had)).spec.containers[0].resources
    assert str(new.requests["memory"]) == after


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("-250m", "-250m leaves nothing of the cpu request, which is 250m"),
        ("-100%", "-100% leaves nothing of the cpu request"),
        (":+10%", "+10% of what? There is no cpu limit yet"),
    ],
)
def test_more_of_nothing_and_less_than_nothing_are_refused(asked: str, told: str) -> None:
    with pytest.raises(RequestError, match=re.escape(told)):
        apply(ResizeRequest({"cpu": parse_amount("--cpu", asked)}), pod(container(requests={"cpu": "250m"})))


def test_the_proportion_is_the_templates_and_what_was_recorded_goes_before_it() -> None:
    had = container(requests={"cpu": "400m"}, limits={"cpu": "670m"})
    template = PodSpec(containers=pod(container(requests={"cpu": "300m"}, limits={"cpu": "500m"})).spec.containers)
    request = with_template(ResizeRequest({"cpu": parse_amount("--cpu", "6")}), template)
    assert str(apply(request, pod(had)).spec.containers[0].resources.limits["cpu"]) == "10"
    first = pod(container(requests={"cpu": "300m"}, limits={"cpu": "500m"}))
    noted = msgspec.structs.replace(pod(had), metadata=ObjectMeta(annotations={BEFORE: remembered(first)}))
    without = ResizeRequest({"cpu": parse_amount("--cpu", "6")})
    assert str(apply(without, noted).spec.containers[0].resources.limits["cpu"]) == "10"
    assert str(apply(without, pod(had)).spec.containers[0].resources.limits["cpu"]) == "10050m"


@pytest.mark.parametrize("text", ["", ":", "500m:", "fast", "500m:x", "-"])
def test_what_is_no_amount_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(RequestError, match="request:limit"):
        parse_amount("--cpu", text)


def test_the_container_that_is_meant() -> None:
    request = ResizeRequest({"cpu": parse_amount("--cpu", "1")})
    two = (container("a", requests={"cpu": "1"}), container("b", requests={"cpu": "1"}))
    with pytest.raises(RequestError, match="name one of a, b with -c"):
        apply(request, pod(*two))
    with pytest.raises(RequestError, match='no container "c"; it has a, b'):
        apply(ResizeRequest(request.amounts, "c"), pod(*two))
    level = apply(request, pod(*two, resources={"requests": {"cpu": "3"}}))
    assert level.spec.resources is not None
    assert str(level.spec.resources.requests["cpu"]) == "1"


def test_a_manifest_says_the_sizes_of_the_containers_that_it_names() -> None:
    before = pod(container("a", requests={"cpu": "1"}), container("b", requests={"cpu": "1"}))
    after = apply(from_template(pod(container("b", requests={"cpu": "2"}))), before)
    assert [str(container.resources.requests["cpu"]) for container in after.spec.containers] == ["1", "2"]


@pytest.mark.parametrize(("namespace", "limit"), [("", "660m"), ("elsewhere", "670m")])
def test_a_limit_is_not_rounded_beyond_a_limit_ranges_ratio(namespace: str, limit: str) -> None:
    """300m with 500m is the largest ratio that is allowed; 670m for 400m would be refused."""
    limits = [{"type": "Container", "maxLimitRequestRatio": {"cpu": "1.6666667"}}]
    policy = convert({"metadata": {"name": "p", "namespace": namespace}, "spec": {"limits": limits}}, LimitRange)
    web = pod(container(requests={"cpu": "300m"}, limits={"cpu": "500m"}))
    request = with_template(ResizeRequest({"cpu": parse_amount("--cpu", "400m")}), web.spec, (policy,))
    web = msgspec.structs.replace(web, metadata=msgspec.structs.replace(web.metadata, namespace=namespace and "shop"))
    resources = apply(request, web).spec.containers[0].resources
    assert (str(resources.requests["cpu"]), str(resources.limits["cpu"])) == ("400m", limit)
