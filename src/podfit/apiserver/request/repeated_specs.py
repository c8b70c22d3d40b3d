"""Pods of one template: specs that were read before are known by their bytes, and are not read and defaulted again.

Most new pods come from controllers, whose clients write the same spec for each of them. Of such a body only the
metadata is decoded. What is odd about a body in any way is left to `bodies`, which says what it is.
"""

from operator import attrgetter

import msgspec

from podfit.api.core.v1.pods.types import Pod, PodSpec
from podfit.api.meta import codec
from podfit.api.meta.v1.types import ObjectMeta
from podfit.api.meta.verdict_cache import seen_before
from podfit.apiserver.request.documents import count_of_members, is_unusual
from podfit.apiserver.request.negotiation import JSON

LARGEST = 8 * 1024
"""Bytes of a body that is looked at: larger ones may be refused for their size, or are read beside the loop."""
MOST = 512 * 1024
"""Bytes of specs that are known, and ENTRY for each: a decoded spec takes several times its bytes, and no less."""
ENTRY = 1024
_NO_STATUS = (b"", b"{}")


class _Body(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    kind: str
    api_version: str
    metadata: msgspec.Raw
    spec: msgspec.Raw
    status: msgspec.Raw = msgspec.Raw()

    def known_members(self, body: bytes) -> bool:
        """Whether each member of the pod stands once in the body."""
        own = 5 if self.status else 4
        inside = count_of_members(bytes(self.metadata)) + count_of_members(bytes(self.spec))
        return count_of_members(body) == own + inside


_always = attrgetter("api_version", "kind", "name", "uid")
_decoder = msgspec.json.Decoder(_Body)


class RepeatedSpecs:
    """The repeated specs of one API server. They have their defaults."""

    def __init__(self) -> None:
        self._known: dict[bytes, PodSpec] = {}
        self._size = 0
        self._seen: set[int] = set()
        self._last: tuple[bytes, _Body | None] = b"", None

    def read(self, media_type: str, body: bytes) -> Pod | None:
        """The pod that a body says, with the defaults of its spec; None where it has to be read as any other."""
        parts = self._parts_of(media_type, body) if self._known else None
        if parts is None or (spec := self._known.get(bytes(parts.spec))) is None:
            return None
        metadata = _metadata(bytes(parts.metadata))
        return None if metadata is None else Pod(metadata=metadata, spec=spec)

    def keep(self, media_type: str, body: bytes, spec: PodSpec) -> None:
        """Know the spec of a body with which nothing was odd, when it comes for the second time; `spec` has its
        defaults."""
        if (parts := self._parts_of(media_type, body)) is None:
            return
        if not seen_before(self._seen, text := bytes(parts.spec)):
            return
        if self._size + len(text) + ENTRY > MOST:
            self._known, self._size = {}, 0
        self._size += len(text) + ENTRY if text not in self._known else 0
        self._known[text] = spec

    def _parts_of(self, media_type: str, body: bytes) -> _Body | None:
        """The parts of a body that is read and then kept once."""
        if len(body) > LARGEST:
            return None
        last, parts = self._last
        if last is not body:
            parts = _parts(media_type, body)
            self._last = body, parts
        return parts


def _metadata(text: bytes) -> ObjectMeta | None:
    """What a text says that has each of its members once, and nothing unknown or empty: as many are written again."""
    try:
        meta = codec.decode(text, ObjectMeta)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError):
        return None
    owners = [owner for owner in meta.owner_references if not all(_always(owner))]  # which are written all the same
    if meta.managed_fields or meta.creation_timestamp or meta.deletion_timestamp or owners:
        return None
    return meta if count_of_members(codec.encode(meta)) == count_of_members(text) else None


def _parts(media_type: str, body: bytes) -> _Body | None:
    """The parts of a body that is written as clients write it: nothing beside a pod's own members, each once."""
    if media_type not in ("", JSON) or is_unusual(body):
        return None
    try:
        parts = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    plain = parts.kind == "Pod" and parts.api_version == "v1" and bytes(parts.status) in _NO_STATUS
    return parts if plain and parts.known_members(body) else None
