"""Encryption at rest over any store, in upstream's formats.

    k8s:enc:aesgcm:v1:NAME:   nonce (12 bytes), ciphertext and tag
    k8s:enc:aescbc:v1:NAME:   initialisation vector (16 bytes), ciphertext with PKCS #7 padding

The object's key is authenticated with it (aesgcm), so no value can be passed off as another's. For each resource the
first provider's first key writes and all of them read; what another than that wrote is `stale`, and written again by
the next update even if that changes nothing. Where no rule applies values are plain, and an encrypted one is an error.
"""

import os
from collections.abc import Sequence
from typing import Protocol

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher as Blocks
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC
from cryptography.hazmat.primitives.padding import PKCS7

from podfit.store.decoded_cache import Remembered
from podfit.store.layer import StoreLayer
from podfit.store.protocol import Record, Store, Unreadable

ENCRYPTED = b"k8s:enc:"


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
        self.prefix = b"k8s:enc:aesgcm:v1:%s:" % name.encode()
        self._aead = AESGCM(secret)

    def seal(self, value: bytes, key: bytes) -> bytes:
        nonce = os.urandom(12)
        return nonce + self._aead.encrypt(nonce, value, key)

    def open(self, sealed: bytes, key: bytes) -> bytes:
        try:
            return self._aead.decrypt(sealed[:12], sealed[12:], key)
        except (InvalidTag, ValueError):
            raise ValueError("cipher: message authentication failed") from None


class AesCbc:
    def __init__(self, name: str, secret: bytes) -> None:
        self.prefix = b"k8s:enc:aescbc:v1:%s:" % name.encode()
        self._key = AES(secret)

    def seal(self, value: bytes, key: bytes) -> bytes:
        start, padder = os.urandom(16), PKCS7(128).padder()
        encryptor = Blocks(self._key, CBC(start)).encryptor()
        return start + encryptor.update(padder.update(value) + padder.finalize()) + encryptor.finalize()

    def open(self, sealed: bytes, key: bytes) -> bytes:
        if len(sealed) < 32 or len(sealed) % 16:
            raise ValueError("the stored data is not a multiple of the block size")
        decryptor, unpadder = Blocks(self._key, CBC(sealed[:16])).decryptor(), PKCS7(128).unpadder()
        try:
            return unpadder.update(decryptor.update(sealed[16:]) + decryptor.finalize()) + unpadder.finalize()
        except ValueError:
            raise ValueError("invalid padding on input") from None


PLAIN = Plain()


class Rule(msgspec.Struct, frozen=True):
    """For keys that begin with one of `prefixes`; the first of `ciphers` writes."""

    prefixes: tuple[str, ...]
    ciphers: tuple[Cipher, ...]


class EncryptedStore(StoreLayer):
    """A Store over another; the first rule that a key falls under is its."""

    def __init__(self, store: Store, rules: Sequence[Rule]) -> None:
        super().__init__(store)
        self._rules = tuple(rules)
        self._opened = Remembered()

    def _kept(self, key: str, value: bytes) -> bytes:
        writer = self._ciphers(key)[0]
        return writer.prefix + writer.seal(value, key.encode())

    def _written(self, record: Record, value: bytes) -> Record:
        return Record(record.key, value, record.create_revision, record.mod_revision)

    def _ciphers(self, key: str) -> tuple[Cipher, ...]:
        return next((rule.ciphers for rule in self._rules if key.startswith(rule.prefixes)), (PLAIN,))

    def _shown(self, record: Record) -> Record:
        """The record itself where it is plain and is to be: nothing is copied then."""
        ciphers = self._ciphers(record.key)
        if ciphers[0] is PLAIN and not record.value.startswith(ENCRYPTED):
            return record
        used = [cipher for cipher in ciphers if record.value.startswith(cipher.prefix)]
        if record.value.startswith(ENCRYPTED):
            used = [cipher for cipher in used if cipher is not PLAIN] or used
        if not used:
            raise Unreadable(record.key, "no matching prefix found")
        value = self._opened.get((record.key, record.value), lambda: _open(record, used))
        return Record(record.key, value, record.create_revision, record.mod_revision, stale=used[0] is not ciphers[0])


def _open(record: Record, ciphers: Sequence[Cipher]) -> bytes:
    why = ""
    for cipher in ciphers:
        try:
            return cipher.open(record.value[len(cipher.prefix) :], record.key.encode())
        except ValueError as error:
            why = why or str(error)
    raise Unreadable(record.key, why)
