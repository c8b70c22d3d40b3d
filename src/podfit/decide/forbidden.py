"""`Forbidden`: a refusal by admission, with its text and its machine-readable causes."""

import msgspec

from podfit.core.errors import ApiError, forbidden


class Forbidden(msgspec.Struct, frozen=True):
    """Becomes 403 `pods "web" is forbidden: <text>` (R-049), with another resource where one is named."""

    text: str
    causes: tuple[str, ...] = ()
    resource: str = "pods"
    group: str = ""

    def error(self, name: str) -> ApiError:
        causes = [{"reason": cause} for cause in self.causes]
        return forbidden(self.resource, name, self.text, group=self.group, causes=causes)
