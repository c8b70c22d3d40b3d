"""Values encrypted on their way into any store, in upstream's forms.

    k8s:enc:aesgcm:v1:NAME:   nonce (12 bytes), ciphertext and tag
    k8s:enc:aescbc:v1:NAME:   initialisation vector (16 bytes), ciphertext with PKCS #7 padding

The object's key is authenticated with it (aesgcm), so no value can be passed off as another's. For each resource the
first provider's first key writes and all of them read; what another than that wrote is `stale`, and written again by
the next update even if that changes nothing. Where no rule applies values are plain, and an encrypted one is an error.
"""

import os
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Sequence
from dataclasses import dataclass
from typing import Protocol

from podfit.store.protocol import Change, Page, Record, RevisionConflict, Store, Unreadable, Watch

ENCRYPTED = b"k8s:enc:"
REMEMBERED = 16 * 2**20  # bytes of values that were decrypted and are kept so


class Cipher(Protocol):
    """One key of one provider."""

    @property
    def prefix(self) -> bytes: ...

    def seal(self, value: bytes, key: bytes) -> bytes: ...

    def open(self, sealed: bytes, key: bytes) -> bytes:
        """Raises ValueError with upstream's words for why it cannot."""


class Plain:
    """The provider `identity`."""

    prefix = b""

    def seal(self, value: bytes, key: bytes) -> bytes:
        return value

    def open(self, sealed: bytes, key: bytes) -> bytes:
        if sealed.startswith(ENCRYPTED):
            raise ValueError("identity transformer tried to read encrypted data")
        return sealed


class AesGcm:
    def __init__(self, name: str, secret: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self.prefix = b"k8s:enc:aesgcm:v1:%s:" % name.encode()
        self._aead = AESGCM(secret)

    def seal(self, value: bytes, key: bytes) -> bytes:
        nonce = os.urandom(12)
        return nonce + self._aead.encrypt(nonce, value, key)

    def open(self, sealed: bytes, key: bytes) -> bytes:
        from cryptography.exceptions import InvalidTag

        try:
            return self._aead.decrypt(sealed[:12], sealed[12:], key)
        except (InvalidTag, ValueError):
            raise ValueError("cipher: message authentication failed") from None


class AesCbc:
    def __init__(self, name: str, secret: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.algorithms import AES

        self.prefix = b"k8s:enc:aescbc:v1:%s:" % name.encode()
        self._key = AES(secret)

    def seal(self, value: bytes, key: bytes) -> bytes:
        from cryptography.hazmat.primitives.ciphers import Cipher as Blocks
        from cryptography.hazmat.primitives.ciphers.modes import CBC
        from cryptography.hazmat.primitives.padding import PKCS7

        start, padder = os.urandom(16), PKCS7(128).padder()
        encryptor = Blocks(self._key, CBC(start)).encryptor()
        return start + encryptor.update(padder.update(value) + padder.finalize()) + encryptor.finalize()

    def open(self, sealed: bytes, key: bytes) -> bytes:
        from cryptography.hazmat.primitives.ciphers import Cipher as Blocks
        from cryptography.hazmat.primitives.ciphers.modes import CBC
        from cryptography.hazmat.primitives.padding import PKCS7

        if len(sealed) < 32 or len(sealed) % 16:
            raise ValueError("the stored data is not a multiple of the block size")
        decryptor, unpadder = Blocks(self._key, CBC(sealed[:16])).decryptor(), PKCS7(128).unpadder()
        try:
            return unpadder.update(decryptor.update(sealed[16:]) + decryptor.finalize()) + unpadder.finalize()
        except ValueError:
            raise ValueError("invalid padding on input") from None


PLAIN = Plain()


@dataclass(frozen=True, slots=True)
class Rule:
    """For keys that begin with one of `prefixes`; the first of `ciphers` writes."""

    prefixes: tuple[str, ...]
    ciphers: tuple[Cipher, ...]


class EncryptedStore:
    """A Store over another; the first rule that a key falls under is its."""

    def __init__(self, store: Store, rules: Sequence[Rule]) -> None:
        self._store = store
        self._rules = tuple(rules)
        self._opened: OrderedDict[tuple[str, bytes], bytes] = OrderedDict()
        self._size = 0

    @property
    def revision(self) -> int:
        return self._store.revision

    @property
    def compacted(self) -> int:
        return self._store.compacted

    @property
    def healthy(self) -> bool:
        return self._store.healthy

    async def newest(self) -> int:
        return await self._store.newest()

    async def get(self, key: str) -> Record | None:
        found = await self._store.get(key)
        return self._plain(found) if found else None

    async def list(self, prefix: str, *, after: str = "", limit: int = 0, revision: int = 0) -> Page:
        page = await self._store.list(prefix, after=after, limit=limit, revision=revision)
        return Page([self._plain(record) for record in page.records], page.revision, page.remaining)

    async def create(self, key: str, value: bytes) -> Record:
        record = await self._told(self._store.create(key, self._sealed(key, value)))
        return Record(key, value, record.create_revision, record.mod_revision)

    async def update(self, key: str, value: bytes, *, expected: int) -> Record:
        record = await self._told(self._store.update(key, self._sealed(key, value), expected=expected))
        return Record(key, value, record.create_revision, record.mod_revision)

    async def delete(self, key: str, *, expected: int) -> Record:
        return self._plain(await self._told(self._store.delete(key, expected=expected)))

    def watch(self, prefix: str, *, after: int) -> Watch:
        return _PlainWatch(self._store.watch(prefix, after=after), self)

    async def compact(self, revision: int) -> None:
        await self._store.compact(revision)

    async def close(self) -> None:
        await self._store.close()

    async def _told(self, write: Awaitable[Record]) -> Record:
        try:
            return await write
        except RevisionConflict as error:
            raise RevisionConflict(self._plain(error.current) if error.current else None) from None

    def plain_change(self, change: Change) -> Change:
        previous = self._plain(change.previous) if change.previous else None
        return Change(change.deleted, self._plain(change.record), previous)

    def _ciphers(self, key: str) -> tuple[Cipher, ...]:
        return next((rule.ciphers for rule in self._rules if key.startswith(rule.prefixes)), (PLAIN,))

    def _sealed(self, key: str, value: bytes) -> bytes:
        writer = self._ciphers(key)[0]
        return writer.prefix + writer.seal(value, key.encode())

    def _plain(self, record: Record) -> Record:
        """The record itself where it is plain and is to be: nothing is copied then."""
        ciphers = self._ciphers(record.key)
        if ciphers[0] is PLAIN and not record.value.startswith(ENCRYPTED):
            return record
        used = [each for each in ciphers if record.value.startswith(each.prefix)]
        if record.value.startswith(ENCRYPTED):
            used = [each for each in used if each is not PLAIN] or used
        if not used:
            raise Unreadable(record.key, "no matching prefix found")
        value = self._remembered(record, used)
        return Record(
            record.key, value, record.create_revision, record.mod_revision, stale=used[0] is not ciphers[0]
        )

    def _remembered(self, record: Record, ciphers: Sequence[Cipher]) -> bytes:
        known = record.key, record.value
        if known in self._opened:
            self._opened.move_to_end(known)
            return self._opened[known]
        value = _open(record, ciphers)
        self._opened[known] = value
        self._size += 2 * len(value)
        while self._size > REMEMBERED and self._opened:
            _, forgotten = self._opened.popitem(last=False)
            self._size -= 2 * len(forgotten)
        return value


def _open(record: Record, ciphers: Sequence[Cipher]) -> bytes:
    why = ""
    for cipher in ciphers:
        try:
            return cipher.open(record.value[len(cipher.prefix) :], record.key.encode())
        except ValueError as error:
            why = why or str(error)
    raise Unreadable(record.key, why)


class _PlainWatch:
    def __init__(self, watch: Watch, store: EncryptedStore) -> None:
        self._watch = watch
        self._store = store

    @property
    def revision(self) -> int:
        return self._watch.revision

    def __aiter__(self) -> AsyncIterator[Sequence[Change]]:
        return self

    async def __anext__(self) -> Sequence[Change]:
        return [self._store.plain_change(change) for change in await anext(self._watch)]

    def close(self) -> None:
        self._watch.close()
