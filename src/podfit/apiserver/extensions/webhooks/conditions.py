"""Match conditions of webhooks (CEL): whether a write is sent to one."""

from collections.abc import Mapping
from typing import Any

import msgspec

from podfit.api.admissionregistration.v1.types import ValidatingWebhook
from podfit.api.structural.conditions import verdicts


class Matched(msgspec.Struct, frozen=True):
    """Whether conditions let a write come to a webhook; `error` where they came to no verdict and it must not pass."""

    called: bool
    error: str = ""


def matched(webhook: ValidatingWebhook, values: Mapping[str, Any]) -> Matched:
    """All conditions have to hold. One that does not outweighs those without a verdict, about which the webhook's
    failure policy decides; so it does where they cost too much. Raises TooLong.
    """
    found = verdicts([condition.expression for condition in webhook.match_conditions], values)
    if isinstance(found, str):
        return Matched(called=False, error="" if webhook.failure_policy == "Ignore" else found)
    errors = [verdict for verdict in found if isinstance(verdict, str)]
    if False in found or (errors and webhook.failure_policy == "Ignore"):
        return Matched(called=False)
    text = errors[0] if len(errors) == 1 else f"[{', '.join(dict.fromkeys(errors))}]"
    return Matched(called=False, error=text) if errors else Matched(called=True)
