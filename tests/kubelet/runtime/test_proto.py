"""The committed CRI stubs are what the .proto makes, and the .proto is CRI v1 field by field (R-180)."""

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from grpc_tools import protoc  # type: ignore[import-untyped]  # it has no types

import podfit.kubelet.runtime.cri as package
from podfit.kubelet.runtime.cri import runtime_v1_pb2 as pb

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


SPEC = json.loads((Path(__file__).parent / "cri_v1.json").read_text())
SCALARS = {
    getattr(FieldDescriptor, f"TYPE_{name.upper()}"): name
    for name in ("string", "bytes", "bool", "double", "int32", "int64", "uint32", "uint64")
}


def typed(one: Any) -> str:
    """A field as the specification writes it: `9 map<string,string>`, `8 R HugepageLimit`."""
    kind = one.message_type or one.enum_type
    if one.message_type is not None and one.message_type.GetOptions().map_entry:
        key, value = (typed(field).split(" ", 1)[1] for field in one.message_type.fields)
        return f"{one.number} map<{key},{value}>"
    name = SCALARS[one.type] if kind is None else kind.name
    return f"{one.number} {'R ' if one.is_repeated else ''}{name}"


@pytest.mark.row("R-180")
@pytest.mark.parametrize("name", SPEC["messages"])
def test_every_message_has_the_fields_of_cri_v1(name: str) -> None:
    message = pb.DESCRIPTOR.message_types_by_name[name]
    assert {one.name: typed(one) for one in message.fields} == SPEC["messages"][name]


@pytest.mark.row("R-180")
@pytest.mark.parametrize("name", SPEC["enums"])
def test_every_enum_has_the_values_of_cri_v1(name: str) -> None:
    outer, _, inner = name.rpartition(".")
    holder = pb.DESCRIPTOR.message_types_by_name[outer] if outer else pb.DESCRIPTOR
    assert {one.name: one.number for one in holder.enum_types_by_name[inner].values} == SPEC["enums"][name]


@pytest.mark.row("R-180")
def test_every_call_of_cri_v1_is_there_and_no_other() -> None:
    found = {
        name: {
            call.name: f"{call.input_type.name} -> {'stream ' * call.server_streaming}{call.output_type.name}"
            for call in service.methods
        }
        for name, service in pb.DESCRIPTOR.services_by_name.items()
    }
    assert found == SPEC["services"]


@pytest.mark.row("R-180")
def test_nothing_else_is_in_the_proto() -> None:
    assert set(pb.DESCRIPTOR.message_types_by_name) == set(SPEC["messages"])
    assert pb.DESCRIPTOR.package == "runtime.v1"
