"""LimitRange and ResourceQuota as a real API server applied them to creations and resizes."""

from typing import Any

import msgspec

from podfit.api.core.v1.limits.types import LimitRange, ResourceQuota
from podfit.api.core.v1.pods.types import Pod, PodStatus
from podfit.api.defaults import apply_defaults
from podfit.api.meta.codec import convert, to_dict
from podfit.core.features import DEFAULT_GATES
from podfit.decide.forbidden import Forbidden
from podfit.decide.limits.limit_range import add_defaults, check_limits
from podfit.decide.limits.quota import charge, recount
from podfit.decide.pod.qos import qos_class
from podfit.decide.resize.validation import prepare_resize
from support import golden
from support.patches import STRATEGIC, patched


def stored(manifest: dict[str, Any]) -> Pod:
    pod = apply_defaults(convert(manifest, Pod))
    metadata = msgspec.structs.replace(pod.metadata, name="pod", generation=1)
    return msgspec.structs.replace(pod, metadata=metadata, status=PodStatus(phase="Pending", qos_class=qos_class(pod)))


@golden.parametrize("resize/resize-policy.json", lambda case: case["group"] == "policy")
def test_namespace_policies(case: golden.Case) -> None:
    made = [*(case.get("setup") or ()), *(case.get("setupAfterPod") or ())]
    limits = [apply_defaults(convert(document, LimitRange)) for document in made if document["kind"] == "LimitRange"]
    request, old = case["request"], None
    if request["method"] == "PATCH":
        old = add_defaults(stored(case["pod"]), limits)
        sent = apply_defaults(convert(patched(to_dict(old), request["body"], STRATEGIC), Pod))
        new = prepare_resize(add_defaults(sent, limits), old, DEFAULT_GATES)
    else:
        new = add_defaults(stored(request["body"]), limits)
    quotas = [convert(document, ResourceQuota) for document in made if document["kind"] == "ResourceQuota"]
    quotas = [msgspec.structs.replace(quota, status=recount(quota, [old] if old else [])) for quota in quotas]
    verdict = check_limits(new, limits) or charge(new, old, quotas)
    text = str(verdict.error("{name}")) if isinstance(verdict, Forbidden) else None
    assert text == case["expect"].get("message")
