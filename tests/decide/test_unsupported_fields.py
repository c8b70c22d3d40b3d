"""What a pod is warned of when it is created."""

from typing import Any

import pytest

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.decide.pod.unsupported_fields import unsupported_fields


def warned(container: dict[str, Any] | None = None, **spec: Any) -> list[str]:
    containers = [{"name": "c", **(container or {})}]
    return [
        text.partition(": ")[0]
        for text in unsupported_fields(convert({"spec": {"containers": containers, **spec}}, Pod))
    ]


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
