"""The server's patches, applied to plain documents: what a recorded request makes of an object."""

from typing import Any

from podfit.api.core.v1.pods.types import Pod
from podfit.apiserver.registry.patch import jsonpatch, mergepatch, strategic
from podfit.core.errors import ApiError

STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"
JSON = "application/json-patch+json"


class NotApplicable(Exception):
    """The patch does not fit the document."""


def patched(document: Any, patch: Any, content_type: str) -> Any:
    try:
        match content_type:
            case "application/json-patch+json":
                return jsonpatch.apply(document, patch)
            case "application/merge-patch+json":
                return mergepatch.apply(document, patch)
            case _:
                return strategic.apply(document, patch, Pod)
    except ApiError as error:
        raise NotApplicable(error.message) from error
