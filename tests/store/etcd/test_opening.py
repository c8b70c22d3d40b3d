"""Which etcd is taken, and which data."""

import asyncio
from pathlib import Path

import pytest

from podfit.net.authority import Authority
from podfit.net.system import SystemClock
from podfit.store.etcd import members
from podfit.store.etcd.opening import etcd_store
from podfit.store.etcd.options import EtcdOptions, EtcdUnusable
from podfit.store.protocol import StoreUnavailable
from support.etcd import etcd_cluster, fresh_prefix, open_etcd

HTTP, HTTPS = "http://127.0.0.1:2379", "https://127.0.0.1:2379"
FILE = Path("/some.pem")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (EtcdOptions(servers=()), "no etcd server was named"),
        (EtcdOptions(servers=("127.0.0.1:2379",)), "is no etcd server"),
        (EtcdOptions(servers=("https://127.0.0.1",)), "is no etcd server"),
        (EtcdOptions(servers=("https://127.0.0.1:x",)), "is no etcd server"),
        (EtcdOptions(servers=("ftp://127.0.0.1:1",)), "is no etcd server"),
        (EtcdOptions(servers=(HTTP, HTTPS)), "either all http or all https"),
        (EtcdOptions(servers=(HTTP,), ca_file=FILE), "named with http://"),
        (EtcdOptions(servers=(HTTPS,), cert_file=FILE), "needs its key"),
        (EtcdOptions(servers=(HTTPS,), key_file=FILE), "a key its certificate"),
        (EtcdOptions(servers=(HTTP,), prefix="/registry/"), "does not end with it"),
        (EtcdOptions(servers=(HTTP,), prefix="registry"), "begins with /"),
    ],
)
def test_what_cannot_work_is_said_before_anything_is_asked(options: EtcdOptions, message: str) -> None:
    with pytest.raises(EtcdUnusable, match=message):
        options.check()


def test_certificates_that_are_not_there_are_named(tmp_path: Path) -> None:
    options = EtcdOptions(servers=(HTTPS,), ca_file=tmp_path / "missing.pem")
    with pytest.raises(EtcdUnusable, match=r"missing\.pem"):
        asyncio.run(etcd_store(options))


@pytest.mark.etcd
@pytest.mark.parametrize(("value", "whose"), [(b"k8s\0\n\x0c", "an upstream API server"), (b"{}", "another program")])
async def test_data_of_others_is_refused_and_left_alone(etcd_url: str, value: bytes, whose: str) -> None:
    outer = await open_etcd(etcd_url, prefix=fresh_prefix())
    record = await outer.create("inner/pods/default/web", value)
    prefix = outer._keys.prefix + "inner"
    for _ in range(2):
        with pytest.raises(EtcdUnusable, match=f"holds 1 keys of {whose}.*inner/pods/default/web.*--etcd-prefix"):
            await open_etcd(etcd_url, prefix=prefix)
    assert (await outer.list("inner")).records == [record]
    await outer.close()


@pytest.mark.etcd
@pytest.mark.parametrize(
    ("mark", "message"), [(b'{"podfit":99}', "newer podfit: encoding 99"), (b"hello", "not the mark of podfit")]
)
async def test_a_mark_of_another_kind_is_refused(etcd_url: str, mark: bytes, message: str) -> None:
    outer = await open_etcd(etcd_url, prefix=fresh_prefix())
    await outer.create("inner/", mark)
    with pytest.raises(EtcdUnusable, match=message):
        await open_etcd(etcd_url, prefix=outer._keys.prefix + "inner")
    await outer.close()


@pytest.mark.etcd
async def test_what_one_process_stored_the_next_one_finds(etcd_url: str) -> None:
    prefix = fresh_prefix()
    first = await open_etcd(etcd_url, prefix=prefix)
    made = await first.create("/a", b"1")
    await first.close()
    second = await open_etcd(etcd_url, prefix=prefix)
    assert (await second.list("/")).records == [made]
    (change,) = await anext(second.watch("/", after=made.mod_revision - 1))
    assert change.record == made
    await second.close()


@pytest.mark.etcd
async def test_etcd_behind_tls_wants_a_certificate_of_its_authority(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(members, "ALL_SECONDS", 0.3)
    clock = SystemClock()
    authority = Authority.load(tmp_path / "pki", clock=clock)
    server = authority.server("etcd", hosts=("127.0.0.1",))
    client = authority.client("etcd-client", user="apiserver")
    stranger = Authority.load(tmp_path / "other", clock=clock)
    foreign = stranger.client("etcd-client", user="apiserver")
    ca = tmp_path / "pki" / "ca.crt"
    flags = (
        "--cert-file",
        str(server.certificate_file),
        "--key-file",
        str(server.key_file),
        "--client-cert-auth",
        "--trusted-ca-file",
        str(ca),
    )
    with etcd_cluster(1, *flags, tls=authority.client("health", user="health"), ca=ca) as (member,):
        good = EtcdOptions(
            servers=(member.client,), ca_file=ca, cert_file=client.certificate_file, key_file=client.key_file
        )
        store = await etcd_store(good)
        assert await store.get("/nothing") is None
        await store.close()
        wrong_authority = EtcdOptions(servers=good.servers, ca_file=tmp_path / "other" / "ca.crt")
        wrong_client = EtcdOptions(
            servers=good.servers, ca_file=ca, cert_file=foreign.certificate_file, key_file=foreign.key_file
        )
        for options in (wrong_authority, wrong_client):
            with pytest.raises(StoreUnavailable, match=member.client):
                await etcd_store(options)
