"""Pretty-printed JSON and YAML, where the client asks for them."""

import asyncio

import msgspec
import yaml

from podfit.apiserver.request.negotiation import JSON, YAML
from podfit.apiserver.request.representations import wanted_media
from podfit.core.errors import ApiError
from podfit.net.wire import LARGEST_JOINED, Pieces, Request, Response

TOO_LARGE = "the list is too large for YAML; ask for JSON, or for parts of it by limit"
_READERS = ("curl", "Wget", "Mozilla/5.0")
_YES = ("1", "t", "T", "true", "TRUE", "True")


async def presented(request: Request, answer: Response) -> Response:
    """The same answer in the form and layout that was asked for; streams, large lists and other texts stay as they are.
    Raises 406 for a large list in YAML."""
    media, indented = wanted_media(request)
    of_yaml = media == YAML
    if not of_yaml and not indented and not _pretty(request):
        return answer
    body = answer.body
    if isinstance(body, Pieces) and body.size <= LARGEST_JOINED:
        body = body.joined()
    if of_yaml and isinstance(body, Pieces):
        raise ApiError(406, "NotAcceptable", TOO_LARGE)
    if not isinstance(body, bytes) or not body or not answer.headers.get("content-type", "").startswith(JSON):
        return answer if body is answer.body else Response(answer.status, answer.headers, body)
    if of_yaml:
        text = await asyncio.to_thread(_yaml, body)
        return Response(answer.status, {**answer.headers, "content-type": YAML}, text)
    return Response(answer.status, answer.headers, msgspec.json.format(body, indent=2))


def _yaml(body: bytes) -> bytes:
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # whichever is there
    text: str = yaml.dump(
        msgspec.json.decode(body), Dumper=dumper, default_flow_style=False, sort_keys=True, allow_unicode=True
    )
    return text.encode()


def _pretty(request: Request) -> bool:
    if asked := request.param("pretty"):
        return asked in _YES
    return request.headers.get("user-agent", "").startswith(_READERS)
