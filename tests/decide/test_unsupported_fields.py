"""What a pod is warned of when it is created."""

from typing import Any

import pytest

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.decide.pod.unsupported_fields import unsupported_fields


def warned(container: dict[str, Any] | None = None, *, routed: bool = False, **spec: Any) -> list[str]:
    pod = convert({"spec": {"containers": [{"name": "c", **(container or {})}], **spec}}, Pod)
    return [text.partition(": ")[0] for text in unsupported_fields(pod, routed)]


@pytest.mark.parametrize(
    ("spec", "about"),
    [
        ({}, []),
        ({"hostname": "h", "subdomain": "s"}, ["spec.hostname", "spec.subdomain"]),
        ({"setHostnameAsFQDN": True}, ["spec.setHostnameAsFQDN"]),
        ({"hostUsers": False}, ["spec.hostUsers"]),
        (
            {"securityContext": {"supplementalGroupsPolicy": "Strict"}},
            ["spec.securityContext.supplementalGroupsPolicy"],
        ),
        ({"container": {"ports": [{"containerPort": 1, "hostPort": 1}]}}, ["container c"]),
        ({"container": {"ports": [{"containerPort": 1, "hostPort": 1}]}, "hostNetwork": True}, []),
    ],
)
def test_warnings(spec: dict[str, Any], about: list[str]) -> None:
    assert warned(**spec) == about


@pytest.mark.parametrize(
    ("spec", "about"),
    [
        ({"hostname": "h", "subdomain": "s", "setHostnameAsFQDN": True, "hostnameOverride": "o"}, []),
        ({"container": {"ports": [{"containerPort": 1, "hostPort": 1}]}}, []),
        ({"hostUsers": False}, ["spec.hostUsers"]),
    ],
)
def test_where_pods_have_a_network_of_their_own_fewer_are_warned_of(spec: dict[str, Any], about: list[str]) -> None:
    assert warned(**spec, routed=True) == about
