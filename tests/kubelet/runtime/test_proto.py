"""The committed CRI stubs are what the .proto makes (R-180)."""

from importlib.metadata import version
from pathlib import Path

from grpc_tools import protoc  # type: ignore[import-untyped]

import podfit.kubelet.runtime.cri as package

FOLDER = Path(package.__file__).parent
STUB = "runtime_v1_pb2.py"


def test_generating_again_gives_the_same_messages(tmp_path: Path) -> None:
    source = str(FOLDER / "runtime_v1.proto")
    code = protoc.main(["protoc", f"--proto_path={FOLDER}", f"--python_out={tmp_path}", source])
    assert code == 0
    assert _descriptor(tmp_path / STUB) == _descriptor(FOLDER / STUB), f"protobuf {version('protobuf')}"


def _descriptor(stub: Path) -> str:
    """The serialised messages; what stands around them depends on the compiler's version."""
    return next(line for line in stub.read_text().splitlines() if "AddSerializedFile" in line)
