"""Every kind in protobuf, as the messages that kubectl was compiled with write it."""

import pytest

from podfit.api.meta.schema import unknown_fields
from podfit.apiserver.request import protobuf
from podfit.apiserver.request.bodies import typed
from podfit.apiserver.request.protobuf.layouts import bodies
from support.messages import descriptor, empty, full
from support.protobuf import enveloped

pytestmark = pytest.mark.kubectl
KINDS = sorted(bodies())
LATER = {("apiextensions.k8s.io/v1", "CustomResourceDefinition"), ("apiregistration.k8s.io/v1", "APIService")}
"""Kinds whose messages kubectl does not have: it has no typed client for them."""


def test_kubectl_knows_the_others() -> None:
    assert {kind for kind in KINDS if descriptor(*kind) is None} == LATER


@pytest.mark.row("R-020")
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in LATER], ids="/".join)
def test_a_kind_with_everything_and_with_nothing(kind: tuple[str, str]) -> None:
    message = descriptor(*kind)
    assert message is not None
    for raw, wanted in (full(message), empty(message)):
        read = protobuf.decode(enveloped(*kind, raw))
        assert read == {"apiVersion": kind[0], "kind": kind[1], **wanted}
        assert unknown_fields(read, bodies()[kind]) == []
        typed(read, bodies()[kind])
