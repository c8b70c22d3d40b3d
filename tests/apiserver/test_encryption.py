"""Secrets at rest: what lies in the store, rotation of keys, and what happens without them."""

import base64
import json
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podfit.api.core.v1.config.types import ConfigMap, Secret
from podfit.api.meta.v1.types import ObjectMeta
from podfit.apiserver.registry.encryption import EncryptionConfigError, read_rules
from podfit.core.errors import ApiError
from podfit.store.encrypted import PLAIN, AesCbc, AesGcm, Cipher, EncryptedStore
from podfit.store.logged import LoggedStore
from podfit.store.memory import memory_store
from support.etcd import AnyStore, open_etcd
from support.server import Server, running_server

KEY = "/registry/secrets/default/a"
HIDDEN = b"swordfish"
ONE, TWO = (base64.b64encode(bytes([number]) * 32).decode() for number in (1, 2))
AES_ONE = {"aesgcm": {"keys": [{"name": "one", "secret": ONE}]}}
AES_TWO = {"aesgcm": {"keys": [{"name": "two", "secret": TWO}]}}
AES_BOTH = {"aesgcm": {"keys": [*AES_TWO["aesgcm"]["keys"], *AES_ONE["aesgcm"]["keys"]]}}
CBC = {"aescbc": {"keys": [{"name": "one", "secret": ONE}]}}
IDENTITY: dict[str, Any] = {"identity": {}}


def configuration(directory: Path, *providers: dict[str, Any], resources: tuple[str, ...] = ("secrets",)) -> Path:
    path = directory / "encryption.yaml"
    document = {
        "kind": "EncryptionConfiguration",
        "apiVersion": "apiserver.config.k8s.io/v1",
        "resources": [{"resources": resources, "providers": providers}],
    }
    path.write_text(json.dumps(document))
    return path


@asynccontextmanager
async def server(raw: LoggedStore, directory: Path, *providers: dict[str, Any]) -> AsyncIterator[Server]:
    """An API server on a store that outlives it."""
    rules = read_rules(configuration(directory, *providers)) if providers else ()
    async with running_server(directory, store=_Kept(raw, rules)) as running:
        yield running


class _Kept(EncryptedStore):
    async def close(self) -> None:
        """The next server has the same store."""


@pytest.fixture
async def raw() -> AsyncIterator[LoggedStore]:
    store = memory_store()
    yield store
    await store.close()


def secret(name: str = "a") -> Secret:
    return Secret(metadata=ObjectMeta(name=name, namespace="default"), data={"password": HIDDEN})


async def stored(raw: LoggedStore, key: str = KEY) -> bytes:
    found = await raw.get(key)
    assert found is not None
    return found.value


@pytest.mark.parametrize(
    ("provider", "prefix"), [(AES_ONE, b"k8s:enc:aesgcm:v1:one:"), (CBC, b"k8s:enc:aescbc:v1:one:")]
)
async def test_the_store_never_has_the_plaintext(
    raw: LoggedStore, tmp_path: Path, provider: dict[str, Any], prefix: bytes
) -> None:
    begin = raw.revision
    async with server(raw, tmp_path, provider) as running:
        made = await running.client.create(secret())
        await running.client.patch(Secret, "a", "default", {"metadata": {"labels": {"sword": "fish"}}})
        await running.client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="default"), data={"k": "plain"}))
        assert (await running.client.get(Secret, "a", "default")).data == made.data
        (listed,) = (await running.client.list(Secret, "default", labels="sword=fish")).items
        assert listed.data == made.data
        async with aclosing(running.client.watch(Secret, "default", resource_version=str(begin))) as events:
            for _ in range(2):
                assert (await anext(events)).object.data == made.data
    changes = await anext(raw.watch("/registry/secrets/", after=begin))
    assert len(changes) == 2
    for change in changes:
        assert change.record.value.startswith(prefix)
        assert base64.b64encode(HIDDEN) not in change.record.value
        assert b"password" not in change.record.value
    assert b"plain" in await stored(raw, "/registry/configmaps/default/a")


async def test_keys_rotate_by_replacing_what_is_there_with_itself(raw: LoggedStore, tmp_path: Path) -> None:
    async with server(raw, tmp_path, IDENTITY) as running:
        await running.client.create(secret())
    assert base64.b64encode(HIDDEN) in await stored(raw)
    steps = [
        ((AES_ONE, IDENTITY), b":one:"),
        ((AES_BOTH,), b":two:"),
        ((AES_TWO,), b":two:"),
        ((IDENTITY, AES_TWO), b""),
    ]
    for providers, name in steps:
        async with server(raw, tmp_path, *providers) as running:
            found = await running.client.get(Secret, "a", "default")
            replaced = await running.client.update(found)
            again = await running.client.update(replaced)
            assert again == replaced, "it is as it should be, and was not written again"
            prefix = b"k8s:enc:aesgcm:v1" + name if name else b'{"kind":"Secret"'
            assert (await stored(raw)).startswith(prefix)


@pytest.mark.parametrize(
    ("providers", "why"),
    [
        ((AES_TWO,), "no matching prefix found"),
        (({"aesgcm": {"keys": [{"name": "one", "secret": TWO}]}},), "cipher: message authentication failed"),
        ((IDENTITY,), "identity transformer tried to read encrypted data"),
        ((), "identity transformer tried to read encrypted data"),
    ],
)
async def test_without_the_key_the_object_is_named(
    raw: LoggedStore, tmp_path: Path, providers: tuple[dict[str, Any], ...], why: str
) -> None:
    async with server(raw, tmp_path, AES_ONE) as running:
        await running.client.create(secret())
    async with server(raw, tmp_path, *providers) as running:
        for asking in (
            running.client.get(Secret, "a", "default"),
            running.client.list(Secret, "default"),
            running.client.patch(Secret, "a", "default", {"data": {}}),
        ):
            with pytest.raises(ApiError) as refused:
                await asking
            assert (refused.value.code, refused.value.reason) == (500, "InternalError")
            assert refused.value.message == f'Internal error occurred: unable to transform key "{KEY}": {why}'
        await running.client.create(ConfigMap(metadata=ObjectMeta(name="others-live", namespace="default")))


async def test_a_value_is_not_good_under_another_name(raw: LoggedStore, tmp_path: Path) -> None:
    async with server(raw, tmp_path, AES_ONE) as running:
        await running.client.create(secret())
        await raw.create("/registry/secrets/default/b", await stored(raw))
        with pytest.raises(ApiError, match=r"default/b.*authentication failed"):
            await running.client.get(Secret, "b", "default")


@pytest.mark.etcd
async def test_on_etcd_too(etcd_url: str, tmp_path: Path) -> None:
    raw: AnyStore = await open_etcd(etcd_url)
    store = EncryptedStore(raw, read_rules(configuration(tmp_path, AES_ONE)))
    watch = store.watch("/registry/secrets/", after=store.revision)
    made = await store.create(KEY, HIDDEN)
    assert (await store.list("/registry/secrets/")).records == [made]
    (change,) = await anext(watch)
    assert (change.record, made.value) == (made, HIDDEN)
    below = await raw.get(KEY)
    assert below is not None
    assert below.value.startswith(b"k8s:enc:aesgcm:v1:one:")
    assert HIDDEN not in below.value
    assert await store.delete(KEY, expected=made.mod_revision) != made
    await store.close()


@given(value=st.binary(max_size=100), key=st.text(max_size=20), cipher=st.sampled_from([AesGcm, AesCbc]))
def test_what_is_sealed_opens(value: bytes, key: str, cipher: Any) -> None:
    one: Cipher = cipher("one", bytes(32))
    sealed = one.seal(value, key.encode())
    assert one.open(sealed, key.encode()) == value
    assert one.seal(value, key.encode()) != sealed
    for broken in (sealed[:-1], b""):
        with pytest.raises(ValueError, match=r"authentication failed|multiple of the block size"):
            one.open(broken, key.encode())


@pytest.mark.parametrize(
    ("resources", "inside", "outside"),
    [
        (("secrets",), ["/registry/secrets/a/b"], ["/registry/secretstores/a/b", "/registry/apps/secrets/a/b"]),
        (("deployments.apps",), ["/registry/apps/deployments/a/b"], ["/registry/deployments/a/b"]),
        (("widgets.example.com",), ["/registry/example.com/widgets/a/b"], ["/registry/widgets/a/b"]),
        (("*.apps",), ["/registry/apps/deployments/a/b", "/registry/apps/replicasets/a/b"], ["/registry/pods/a/b"]),
        (("*.",), ["/registry/pods/a/b", KEY], ["/registry/apps/deployments/a/b"]),
        (("*.*",), ["/registry/pods/a/b", "/registry/apps/deployments/a/b"], []),
    ],
)
def test_which_resources_a_rule_is_for(
    tmp_path: Path, resources: tuple[str, ...], inside: list[str], outside: list[str]
) -> None:
    (rule,) = read_rules(configuration(tmp_path, AES_ONE, IDENTITY, resources=resources))
    assert [key for key in (*inside, *outside) if key.startswith(rule.prefixes)] == inside
    assert rule.ciphers[1] is PLAIN


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "encryption.yaml"),
        ("kind: Pod\napiVersion: v1\nresources: []\n", "it is Pod of v1, not EncryptionConfiguration"),
        ("kind: EncryptionConfiguration\n", "missing required field"),
        (([{"secretbox": {"keys": []}}]), r"resources\[0\]\.providers\[0\]: the provider secretbox is not supported"),
        (([{"kms": {"name": "x"}}]), "the provider kms is not supported"),
        (([{"rot13": {}}]), "the provider rot13 is not known"),
        (([]), "needs resources and providers"),
        (([{"aesgcm": {"keys": []}}]), r"providers\[0\]\.aesgcm has no keys"),
        (([{"aesgcm": {"keys": [{"name": "a", "secret": "x"}]}}]), r"aesgcm\.keys\[0\]: the secret is not base64"),
        (([{"aesgcm": {"keys": [{"name": "a", "secret": "eHg="}]}}]), "has 2 bytes; AES takes 16, 24 or 32"),
        (([{"aesgcm": {"keys": [{"name": "", "secret": ONE}]}}]), "'' is no name"),
        (([{"aesgcm": {"keys": [{"name": "a", "secret": ONE}] * 2}}]), "two keys of one name"),
        (([{"aesgcm": {"keys": []}, "identity": {}}]), "has to name one provider"),
    ],
)
def test_what_is_wrong_with_the_file_is_said(tmp_path: Path, text: Any, message: str) -> None:
    path = configuration(tmp_path, *text) if isinstance(text, list) else tmp_path / "encryption.yaml"
    if isinstance(text, str):
        path.write_text(text)
    with pytest.raises(EncryptionConfigError, match=message):
        read_rules(path)


@pytest.mark.parametrize("resource", ["", "*", "Secrets", "pods/status", "a.*"])
def test_what_is_no_resource_is_said(tmp_path: Path, resource: str) -> None:
    with pytest.raises(EncryptionConfigError, match="is no resource"):
        read_rules(configuration(tmp_path, AES_ONE, resources=(resource,)))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(EncryptionConfigError, match=r"--encryption-provider-config: .*missing\.yaml"):
        read_rules(tmp_path / "missing.yaml")
