"""The built-in images: complete OCI layouts, the same bytes on every build."""

import io
import tarfile
from pathlib import Path

import msgspec
import pytest

from podfit.kubelet.runtime import images
from podfit.kubelet.runtime.images import ImageContents, archive
from podfit.net.processes import MissingProgram


@pytest.fixture
def recipe(tmp_path: Path) -> ImageContents:
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF static")
    return ImageContents(
        name="docker.io/library/x:1", command=("run",), files={"bin/run": program}, links={"bin/x": "run"}
    )


def test_an_archive_is_a_whole_image(recipe: ImageContents, tmp_path: Path) -> None:
    with tarfile.open(archive(recipe, tmp_path / "out")) as tar:
        names = tar.getnames()
        index = msgspec.json.decode(_read(tar, "index.json"))
        described = index["manifests"][0]
        assert described["annotations"] == {"io.containerd.image.name": "docker.io/library/x:1"}
        manifest = msgspec.json.decode(_read(tar, _blob(described["digest"])))
        config = msgspec.json.decode(_read(tar, _blob(manifest["config"]["digest"])))
        assert config["config"]["Cmd"] == ["run"]
        with tarfile.open(fileobj=io.BytesIO(_read(tar, _blob(manifest["layers"][0]["digest"])))) as layer:
            assert {"tmp", "bin/run", "bin/x"} <= set(layer.getnames())
        assert "oci-layout" in names


def test_building_again_gives_the_same_bytes(recipe: ImageContents, tmp_path: Path) -> None:
    assert archive(recipe, tmp_path / "a").read_bytes() == archive(recipe, tmp_path / "b").read_bytes()


def test_a_changed_program_makes_a_new_archive(recipe: ImageContents, tmp_path: Path) -> None:
    first = archive(recipe, tmp_path / "out")
    recipe.files["bin/run"].write_bytes(b"\x7fELF newer")
    assert archive(recipe, tmp_path / "out") != first


def test_without_a_static_busybox_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "exists", lambda _: False)
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(MissingProgram, match="busybox-static"):
        images.busybox_recipe()


def _read(tar: tarfile.TarFile, name: str) -> bytes:
    member = tar.extractfile(name)
    assert member is not None
    return member.read()


def _blob(digest: str) -> str:
    return f"blobs/sha256/{digest.removeprefix('sha256:')}"
