"""The client of the external gRPC protocol against a provider that answers, lies, hangs and forgets."""

from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest

from podfit.api.core.v1.nodes.types import Node
from podfit.api.meta.codec import convert
from podfit.autoscaler.external import cloudprovider_pb2 as pb
from podfit.autoscaler.external.provider import LARGEST_NODE, Connection, ExternalProvider
from podfit.autoscaler.provider import ProviderError
from podfit.decide.capacity.node_groups import MOST_GROUPS, MOST_INSTANCES, InstanceState, believed
from podfit.net.authority import Authority
from podfit.net.system import SystemClock
from support.eventually import PATIENCE
from support.node_provider import FakeGroup, FakeProvider, node_bytes

Pair = tuple[FakeProvider, ExternalProvider]


def node(name: str, provider_id: str = "") -> Node:
    return convert({"metadata": {"name": name}, "spec": {"providerID": provider_id or f"fake:{name}"}}, Node)


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Pair]:
    groups = {"a": FakeGroup(least=1, target=2, instances=["fake:a-1", "fake:a-2"], template=node_bytes(zone="x"))}
    server = FakeProvider(**groups, b=FakeGroup())
    address = f"unix://{tmp_path}/provider.sock"
    await server.start(address)
    client = ExternalProvider(Connection(address=address, timeout=15.0 * PATIENCE))
    yield server, client
    await client.close()
    await server.stop()


async def test_groups_are_read_with_sizes_instances_and_templates(pair: Pair) -> None:
    server, client = pair
    provided = await client.refresh([node("a-1")])
    first, second = provided.groups
    assert (first.id, first.min_size, first.max_size, first.target) == ("a", 1, 10, 2)
    assert [instance.id for instance in first.instances] == ["fake:a-1", "fake:a-2"]
    assert first.template is not None
    assert str(first.template.status.allocatable["cpu"]) == "4"
    assert first.template.metadata.labels == {"zone": "x"}
    assert [taint.key for taint in first.template.spec.taints] == ["dedicated"]
    assert second.template is None  # C-004: nothing is no template
    assert provided.members == {"a-1": "a"}
    assert server.calls[0] == "Refresh"


async def test_a_provider_with_only_the_mandatory_calls_works(pair: Pair) -> None:
    """C-001; it is asked for a template once."""
    server, client = pair
    server.lacks = {"NodeGroupTemplateNodeInfo"}
    for _ in range(2):
        provided = await client.refresh([])
        assert [(group.template, group.problem) for group in provided.groups] == [(None, ""), (None, "")]
    assert server.calls.count("NodeGroupTemplateNodeInfo") == 2


async def test_what_the_provider_does_not_know_is_not_autoscaled(pair: Pair) -> None:
    """C-003; nor is a Node of a group that it does not tell of. What it said holds until the Node is gone."""
    server, client = pair
    server.members = {"fake:b-1": "b", "fake:c-1": "c"}
    nodes = [node("a-1"), node("b-1"), node("c-1"), node("alone")]
    for _ in range(2):
        assert (await client.refresh(nodes)).members == {"a-1": "a", "b-1": "b"}
    assert server.calls.count("NodeGroupForNode") == 3
    server.hangs = {"NodeGroupForNode"}
    assert (await client.refresh([*nodes, node("new")])).members == {"a-1": "a", "b-1": "b"}


async def test_sizes_are_changed_within_bounds_only(pair: Pair) -> None:
    """What would leave them is refused before the provider is asked."""
    server, client = pair
    await client.refresh([])
    await client.increase("a", 3)
    await client.decrease("a", 2)
    await client.delete_nodes("a", [node("a-1")])
    assert (server.groups["a"].target, server.groups["a"].instances) == (2, ["fake:a-2"])
    before = len(server.calls)
    for work in (
        client.increase("a", 9),
        client.increase("a", 0),
        client.increase("a", -1),
        client.increase("c", 1),
        client.decrease("a", 2),
        client.decrease("a", -1),
        client.delete_nodes("a", [node("a-1")]),
        client.delete_nodes("b", [node("a-2")]),
        client.delete_instances("a", ["fake:a-2", "fake:other"]),
    ):
        with pytest.raises(ProviderError):
            await work
    assert len(server.calls) == before
    await client.delete_instances("a", ["fake:a-2"])
    server.groups["a"].instances = ["fake:a-9"]
    await client.refresh([])
    with pytest.raises(ProviderError, match="keeps 1"):
        await client.delete_instances("a", ["fake:a-9"])


@pytest.fixture
async def impatient(pair: Pair, tmp_path: Path) -> AsyncIterator[ExternalProvider]:
    client = ExternalProvider(Connection(address=f"unix://{tmp_path}/provider.sock", timeout=0.5))
    yield client
    await client.close()


@pytest.mark.parametrize("call", ["Refresh", "NodeGroups"])
async def test_a_provider_that_hangs_is_cut_off(pair: Pair, impatient: ExternalProvider, call: str) -> None:
    """C-007."""
    server, _ = pair
    server.hangs = {call}
    with pytest.raises(ProviderError, match=rf"{call}: no answer within 0\.5 s"):
        await impatient.refresh([])


async def test_a_provider_that_hangs_for_every_group_is_cut_off_as_a_whole(pair: Pair, tmp_path: Path) -> None:
    """A thousand groups at a second each would hold up the loop for minutes."""
    server, _ = pair
    server.groups = {f"g{number}": FakeGroup() for number in range(500)}
    server.hangs = {"NodeGroupNodes"}
    client = ExternalProvider(Connection(address=f"unix://{tmp_path}/provider.sock", timeout=1.0))
    with pytest.raises(ProviderError, match="not all of it was answered within 6 s"):
        await client.refresh([])
    await client.close()


@pytest.mark.parametrize("call", ["NodeGroupTargetSize", "NodeGroupNodes", "NodeGroupTemplateNodeInfo"])
async def test_a_group_of_which_something_is_not_told_has_a_problem(pair: Pair, call: str) -> None:
    server, client = pair
    server.refuses = {call: "the cloud is away"}
    provided = await client.refresh([])
    assert {group.problem for group in provided.groups} == {f"{call}: the cloud is away"}
    server.refuses = {}
    assert {group.problem for group in (await client.refresh([])).groups} == {""}


async def test_answers_are_bounded(tmp_path: Path) -> None:
    server, address = FakeProvider(), f"unix://{tmp_path}/provider.sock"
    await server.start(address)
    client = ExternalProvider(Connection(address=address, timeout=15.0))  # a thousand groups on a busy machine
    try:
        await _check_bounds(server, client)
    finally:
        await client.close()
        await server.stop()


async def _check_bounds(server: FakeProvider, client: ExternalProvider) -> None:
    many = [pb.NodeGroup(id=f"g{number}", maxSize=1) for number in range(MOST_GROUPS + 50)]
    server.groups = {group.id: FakeGroup(most=1) for group in many}
    assert len((await client.refresh([])).groups) == MOST_GROUPS + 1  # one more, which `believed` refuses
    server.groups = {"a": FakeGroup(most=9, instances=[f"i{number}" for number in range(MOST_INSTANCES + 50)])}
    provided = await client.refresh([])
    assert believed(provided.groups).groups[0].problem == f"it has more than {MOST_INSTANCES} instances"
    server.groups = {"large": FakeGroup(template=b"\0" * (LARGEST_NODE + 1))}
    assert "bytes" in (await client.refresh([])).groups[0].problem
    server.answers = {"NodeGroups": b"\x0a" + b"\xff\xff\xff\x0f" + b"x" * (17 << 20)}
    with pytest.raises(ProviderError, match="NodeGroups"):
        await client.refresh([])


@pytest.mark.parametrize(
    "data", [b"\xff\xff", node_bytes(cpu="many"), node_bytes(memory="-")], ids=["no message", "cpu", "memory"]
)
async def test_a_template_that_is_no_node_is_a_problem_of_its_group(pair: Pair, data: bytes) -> None:
    server, client = pair
    server.groups["a"].template = data
    first, second = (await client.refresh([])).groups
    assert "the template of a is no Node" in first.problem
    assert second.problem == ""


async def test_states_and_errors_of_instances_are_read(pair: Pair) -> None:
    """C-006: without a code there is no error, whatever the message says."""
    server, client = pair

    def told(name: str, state: int, code: str, message: str) -> pb.Instance:
        error = pb.InstanceErrorInfo(errorCode=code, errorMessage=message, instanceErrorClass=1)
        return pb.Instance(id=name, status=pb.InstanceStatus(instanceState=state, errorInfo=error))  # type: ignore[arg-type]

    instances = [told("x", 2, "QUOTA", "no more"), told("y", 2, "", "no more"), told("z", 9, "", "")]
    server.answers = {"NodeGroupNodes": pb.NodeGroupNodesResponse(instances=instances)}
    x, y, z = (await client.refresh([])).groups[0].instances
    assert (x.failed, x.error_code, x.error_message, x.out_of_resources) == (True, "QUOTA", "no more", True)
    assert (y.failed, y.error_message) == (False, "")
    assert z.state is InstanceState.UNSPECIFIED


async def test_mutual_tls_lets_in_who_has_a_certificate_of_the_authority(tmp_path: Path) -> None:
    own, other = (Authority.load(tmp_path / name, clock=SystemClock(), name=name) for name in ("own", "other"))
    pairs = {
        "s": own.server("s", hosts=("localhost",)),
        "c": own.client("c", user="autoscaler"),
        "x": other.client("x", user="autoscaler"),
    }
    texts = {name: (pair.certificate_file.read_bytes(), pair.key_file.read_bytes()) for name, pair in pairs.items()}
    certificate, key = texts["s"]
    credentials = grpc.ssl_server_credentials([(key, certificate)], own.certificate, require_client_auth=True)
    server = FakeProvider(a=FakeGroup())
    port = await server.start("localhost:0", credentials)
    try:
        for name, lets_in in (("c", True), ("x", False)):
            certificate, key = texts[name]
            client = ExternalProvider(
                Connection(
                    address=f"localhost:{port}",
                    certificate=certificate,
                    key=key,
                    authority=own.certificate,
                    timeout=2.0 * PATIENCE,
                )
            )
            try:
                if lets_in:
                    assert [group.id for group in (await client.refresh([])).groups] == ["a"]
                else:
                    with pytest.raises(ProviderError):
                        await client.refresh([])
            finally:
                await client.close()
    finally:
        await server.stop()
