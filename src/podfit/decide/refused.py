"""A refusal by admission: its words, and the machine-readable causes that some refusals carry."""

import msgspec

from podfit.core.errors import ApiError, forbidden


class Refused(msgspec.Struct, frozen=True):
    """Becomes 403 `pods "web" is forbidden: <text>` (spec R-049)."""

    text: str
    causes: tuple[str, ...] = ()

    def error(self, pod_name: str) -> ApiError:
        return forbidden("pods", pod_name, self.text, causes=[{"reason": cause} for cause in self.causes])
