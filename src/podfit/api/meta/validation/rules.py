"""`Rules`: the validation functions of one kind."""

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from podfit.api.meta.validation import names
from podfit.core.fields import FieldError

Create = Callable[[Any], list[FieldError]]
Update = Callable[[Any, Any], list[FieldError]]


class Rules(msgspec.Struct, frozen=True):
    """`update` is left out where an update has to satisfy no more than a creation."""

    name: Callable[[str], list[str]] = names.dns_subdomain
    create: Create | None = None
    update: Update | None = None
    status: Update | None = None
    """Of a status that is written apart; metadata is looked at anyway."""
    new_first: bool = False
    """Whether an update is judged as a creation before it is judged as an update: what is wrong is then told twice."""
    finalizers: Literal["standard", "any"] = "standard"
    """Whether finalizers without a domain have to be those that Kubernetes gives; kinds of the API's own machinery do
    not ask, as upstream."""
    metadata: Literal["successor", "both", "new", "any"] = "successor"
    """How an update looks at metadata: as that of the successor, as that of a new object, both, or no more than
    every update of any kind does."""
