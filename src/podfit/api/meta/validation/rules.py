"""`Rules`: the validation functions of one kind."""

from collections.abc import Callable
from typing import Literal

import msgspec

from podfit.api.meta.validation import names
from podfit.core.fields import FieldError

Create = Callable[..., list[FieldError]]
Update = Callable[..., list[FieldError]]
"""Of the new object, and for an update the old one; of the feature gates, where they are asked for."""


class Rules(msgspec.Struct, frozen=True):
    """`update` is left out where an update has to satisfy no more than a creation. With `gated` both are told the
    feature gates as well."""

    name: Callable[[str], list[str]] = names.dns_subdomain
    create: Create | None = None
    update: Update | None = None
    status: Update | None = None
    """Of a status that is written apart; metadata is looked at anyway."""
    gated: bool = False
    new_first: bool = False
    """Whether an update is judged as a creation before it is judged as an update: what is wrong is then told twice."""
    finalizers: Literal["standard", "any"] = "standard"
    """Whether finalizers without a domain have to be those that Kubernetes gives; kinds of the API's own machinery do
    not ask, as upstream."""
    metadata: Literal["successor", "both", "new", "any"] = "successor"
    """How an update looks at metadata: as that of the successor, as that of a new object, both, or no more than
    every update of any kind does."""
