"""Names in image archives: completed as Docker completes them, whoever wrote the archive."""

import gzip
import io
import tarfile
import tracemalloc
from pathlib import Path
from typing import Any

import msgspec
import pytest

from podfit.kubelet.runtime.archives import FULL_NAME, SHORT_NAME, Importer, complete, full_name
from podfit.kubelet.runtime.errors import CRIError


def _archive(path: Path, **files: Any) -> Path:
    with tarfile.open(path, "w") as tar:
        for name, content in {"blob": "bytes", **files}.items():
            data = msgspec.json.encode(content)
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return path


def _index(*annotations: dict[str, str] | None) -> dict[str, Any]:
    return {
        "schemaVersion": 2,
        "manifests": [{"digest": "sha256:1", "annotations": annotation} for annotation in annotations],
    }


@pytest.mark.parametrize(
    ("given", "complete"),
    [
        ("busybox", "docker.io/library/busybox:latest"),
        ("busybox:1.36", "docker.io/library/busybox:1.36"),
        ("bitnami/redis:7", "docker.io/bitnami/redis:7"),
        ("quay.io/a/b", "quay.io/a/b:latest"),
        ("localhost/a:1", "localhost/a:1"),
        ("reg:5000/a", "reg:5000/a:latest"),
        ("a@sha256:" + "0" * 64, "docker.io/library/a@sha256:" + "0" * 64),
    ],
)
def test_full_names(given: str, complete: str) -> None:
    assert full_name(given) == complete


@pytest.mark.parametrize(
    ("files", "names"),
    [
        ({"index.json": _index({FULL_NAME: "docker.io/library/a:1", SHORT_NAME: "1"})}, ("docker.io/library/a:1",)),
        ({"index.json": _index({SHORT_NAME: "quay.io/x/a:1"})}, ("quay.io/x/a:1",)),  # podman
        ({"index.json": _index({SHORT_NAME: "a:1"}, None)}, ("docker.io/library/a:1",)),
        ({"index.json": _index({SHORT_NAME: "v2"})}, ("localhost/my-app:v2",)),  # skopeo, a tag by the specification
        ({"./index.json": _index({SHORT_NAME: "a:1"})}, ("docker.io/library/a:1",)),  # packed again with `tar -c .`
        ({"manifest.json": [{"RepoTags": ["a:1", "b/c"]}]}, ("docker.io/library/a:1", "docker.io/b/c:latest")),
        ({"manifest.json": [{"RepoTags": None}]}, ()),
        ({"index.json": _index({})}, ()),
        ({"index.json": _index({SHORT_NAME: "a:1"}), "manifest.json": []}, ("docker.io/library/a:1",)),  # Docker 25
    ],
)
def test_names_are_complete_in_the_copy(files: dict[str, Any], names: tuple[str, ...], tmp_path: Path) -> None:
    copy = io.BytesIO()
    assert complete(_archive(tmp_path / "My-App.tar", **files), copy) == names
    with tarfile.open(fileobj=copy) as tar:
        assert set(tar.getnames()) == {"blob", *files}
        text = tar.extractfile(next(iter(files)))
        assert text is not None
        described = text.read().decode()
        assert all(f'"{name}"' in described for name in names)


def test_a_compressed_archive_is_read(tmp_path: Path) -> None:
    plain = _archive(tmp_path / "a.tar", **{"index.json": _index({SHORT_NAME: "a:1"})})
    packed = tmp_path / "a.tar.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert complete(packed, io.BytesIO()) == ("docker.io/library/a:1",)


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"index.json": []},
        {"index.json": {}},
        {"index.json": {"manifests": [1]}},
        {"index.json": {"manifests": [{"annotations": {FULL_NAME: 1}}]}},
        {"manifest.json": {}},
        {"manifest.json": [{"RepoTags": "a"}]},
        {"manifest.json": [{"RepoTags": []}]},
    ],
)
async def test_what_is_no_image_is_refused_by_name(files: dict[str, Any], tmp_path: Path) -> None:
    """ctr is not even asked."""
    archive = _archive(tmp_path / "some.tar", **files)
    with pytest.raises(CRIError, match=r"cannot load \S+some\.tar: it "):
        await Importer("/nonexistent/ctr", tmp_path / "socket").load(archive)


async def test_a_cut_archive_is_refused(tmp_path: Path) -> None:
    whole = _archive(tmp_path / "whole.tar", **{"index.json": _index({SHORT_NAME: "a:1"})})
    cut = tmp_path / "cut.tar"
    cut.write_bytes(whole.read_bytes()[:700])
    with pytest.raises(CRIError, match=r"cannot load \S+cut\.tar"):
        await Importer("/nonexistent/ctr", tmp_path / "socket").load(cut)


def _with(path: Path, *members: tarfile.TarInfo, mode: str = "w") -> Path:
    """An image archive with one member more."""
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]  # a mode of the table
        data = msgspec.json.encode(_index({SHORT_NAME: "a:1"}))
        entry = tarfile.TarInfo("index.json")
        entry.size = len(data)
        tar.addfile(entry, io.BytesIO(data))
        for member in members:
            tar.addfile(member, io.BytesIO(bytes(member.size)))
    return path


def _member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "", size: int = 0) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname, entry.size = kind, target, size
    return entry


@pytest.mark.parametrize(
    ("member", "problem"),
    [
        (_member("../x"), "leads out of the archive"),
        (_member("/etc/x"), "leads out of the archive"),
        (_member("a/../../x"), "leads out of the archive"),
        (_member("a/l", tarfile.SYMTYPE, "../../x"), "leads out"),
        (_member("l", tarfile.SYMTYPE, "/etc/passwd"), "leads out"),
        (_member("h", tarfile.LNKTYPE, "blob"), "is neither"),
        (_member("f", tarfile.FIFOTYPE), "is neither"),
        (_member("d", tarfile.CHRTYPE), "is neither"),
    ],
)
def test_members_that_no_image_has_are_refused(member: tarfile.TarInfo, problem: str, tmp_path: Path) -> None:
    with pytest.raises(tarfile.TarError, match=problem):
        complete(_with(tmp_path / "a.tar", member), io.BytesIO())


def test_links_inside_of_the_archive_are_kept(tmp_path: Path) -> None:
    copy = io.BytesIO()
    complete(_with(tmp_path / "a.tar", _member("b/layer.tar", tarfile.SYMTYPE, "../a/layer.tar")), copy)
    with tarfile.open(fileobj=copy) as tar:
        assert tar.getmember("b/layer.tar").linkname == "../a/layer.tar"


def test_an_archive_of_many_members_is_refused(tmp_path: Path) -> None:
    with pytest.raises(tarfile.TarError, match="more than 20000 members"):
        complete(_with(tmp_path / "a.tar.gz", *(_member(f"m{n}") for n in range(20_001)), mode="w:gz"), io.BytesIO())


def test_an_archive_that_unpacks_to_more_than_there_is_room_is_refused(tmp_path: Path) -> None:
    """Its size is known before it is written. A file with holes is as large as it says."""
    copy = io.BytesIO()
    with pytest.raises(tarfile.TarError, match="unpacks to more than 10000000 bytes"):
        complete(_with(tmp_path / "a.tar.gz", _member("zeros", size=50 << 20), mode="w:gz"), copy, room=10_000_000)
    assert copy.tell() == 0


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.XGLTYPE])
def test_a_header_is_not_taken_into_memory_whatever_its_size(kind: bytes, tmp_path: Path) -> None:
    archive = tmp_path / "a.tar.gz"
    with gzip.open(archive, "wb") as file:
        file.write(_member("x", kind, size=256 << 20).tobuf(tarfile.USTAR_FORMAT))
        for _ in range(256):
            file.write(bytes(1 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(tarfile.TarError, match="a header of 268435456 bytes"):
            complete(archive, io.BytesIO())
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


def test_a_description_has_a_bound(tmp_path: Path) -> None:
    with pytest.raises(tarfile.TarError, match=r"index\.json has 8388608 bytes"):
        complete(_with(tmp_path / "a.tar", _member("index.json", size=8 << 20)), io.BytesIO())
