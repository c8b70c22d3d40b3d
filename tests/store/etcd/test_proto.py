"""The committed stubs of etcd's API are what the .proto makes. That its numbers are etcd's, the tests on etcd show."""

from importlib.metadata import version
from pathlib import Path

from grpc_tools import protoc  # type: ignore[import-untyped]  # it has no types

import podfit.store.etcd as package

FOLDER = Path(package.__file__).parent
STUB = "etcd_v3_pb2.py"


def test_generating_again_gives_the_same_messages(tmp_path: Path) -> None:
    """With `--pyi_out` beside `--python_out`, and the package's folder for both, this is how they are made."""
    source = str(FOLDER / "etcd_v3.proto")
    code = protoc.main(["protoc", f"--proto_path={FOLDER}", f"--python_out={tmp_path}", source])
    assert code == 0
    assert _descriptor(tmp_path / STUB) == _descriptor(FOLDER / STUB), f"protobuf {version('protobuf')}"


def _descriptor(stub: Path) -> str:
    return next(line for line in stub.read_text().splitlines() if "AddSerializedFile" in line)
