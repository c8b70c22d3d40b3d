"""Defaults of secrets."""

from collections.abc import Callable, Mapping
from typing import Any

from podfit.api.core.v1.config.types import Secret
from podfit.api.meta.base import Object
from podfit.api.meta.defaulting import change, fill


def _secret(secret: Secret) -> Secret:
    """`stringData` is a way of writing `data`, and is never read back."""
    if secret.string_data:
        written = {key: text.encode() for key, text in secret.string_data.items()}
        secret = change(secret, data={**secret.data, **written}, string_data={})
    return fill(secret, type="Opaque")


DEFAULTS: Mapping[type[Object], Callable[[Any], Any]] = {Secret: _secret}
