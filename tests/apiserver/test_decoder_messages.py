"""What a client is told of a document that is not an object of its kind: upstream's words, from our annotations."""

from typing import Any

import pytest

from podfit.api.apps.v1.deployments import Deployment
from podfit.api.core.v1.pods.types import Pod
from podfit.apiserver.request.bodies import typed
from podfit.apiserver.request.decoder_messages import unrecognized
from podfit.core.errors import ApiError

START = "json: cannot unmarshal "


@pytest.mark.parametrize(
    ("document", "text"),
    [
        (
            {"spec": {"containers": [{"command": [{}]}]}},
            "object into Go struct field Container.spec.containers.command of type string",
        ),
        (
            {"spec": {"containers": [{"command": "x"}]}},
            "string into Go struct field Container.spec.containers.command of type []string",
        ),
        ({"spec": {"containers": ["x"]}}, "string into Go struct field PodSpec.spec.containers of type v1.Container"),
        ({"spec": {"nodeSelector": {"a": 1}}}, "number into Go struct field PodSpec.spec.nodeSelector of type string"),
        ({"spec": {"priority": "x"}}, "string into Go struct field PodSpec.spec.priority of type int32"),
        ({"spec": {"priority": 1.5}}, "number 1.5 into Go struct field PodSpec.spec.priority of type int32"),
        (
            {"spec": {"terminationGracePeriodSeconds": "x"}},
            "string into Go struct field PodSpec.spec.terminationGracePeriodSeconds of type int64",
        ),
        ({"spec": {"containers": [{"resources": {"limits": 5}}]}}, ""),
        (
            {"metadata": {"finalizers": {}}},
            "object into Go struct field ObjectMeta.metadata.finalizers of type []string",
        ),
    ],
)
def test_the_decoder_names_struct_path_and_type(document: dict[str, Any], text: str) -> None:
    with pytest.raises(ApiError) as refused:
        typed(document, Pod)
    said = refused.value.message.removeprefix('Pod in version "v1" cannot be handled as a Pod: ')
    assert said == START + text if text else not said.startswith(START)


def test_a_field_of_several_types_is_told_in_our_words() -> None:
    with pytest.raises(ApiError, match=r"Expected .* at `\$\.spec\.strategy\.rollingUpdate\.maxSurge`"):
        typed({"spec": {"strategy": {"rollingUpdate": {"maxSurge": {}}}}}, Deployment)


def test_a_long_body_is_quoted_by_its_beginning() -> None:
    assert unrecognized("why", b"{" + b"x" * 40, "Pod").endswith(f"why ({{{'x' * 29}...)".replace("...)", " ...)"))
    assert unrecognized("why", b"\xff" * 3_000_000, "Pod").endswith(f"why ({'ff' * 30} ...)")
