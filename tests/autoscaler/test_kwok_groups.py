"""The file of `--node-groups`, and the maps and files that a cluster autoscaler reads beside it."""

import io
from pathlib import Path

import pytest

from podfit.autoscaler import kwok
from podfit.autoscaler.autoscaler import LARGEST_MAP, priorities_of
from podfit.autoscaler.kwok import BadGroups, read_groups
from podfit.decide.capacity.node_groups import MOST_GROUPS
from podfit.process.autoscaler.options import LARGEST_CONFIG, AutoscalerOptions, CloudProvider
from podfit.process.errors import UsageError

EXAMPLE = Path(__file__).parents[2] / "examples" / "node-groups.yaml"


def group(name: str = "small", *, capacity: str = "{cpu: 2, memory: 4Gi}", **counts: str) -> str:
    marks = [
        f"    {kwok.PREFIX}name: {name}",
        *(f'    {kwok.PREFIX}{key}-count: "{value}"' for key, value in counts.items()),
    ]
    lines = ["kind: Node", "metadata:", "  annotations:", *marks, f"status: {{capacity: {capacity}}}"]
    return "\n".join(lines) + "\n"


def test_the_example_has_two_groups() -> None:
    small, large = read_groups(EXAMPLE.read_text())
    assert (small.name, small.least, small.desired, small.most) == ("small", 0, 0, 10)
    assert str(large.node.status.capacity["cpu"]) == "8"


def test_groups_come_in_documents_and_lists_and_say_their_sizes() -> None:
    [one] = read_groups(group(min="1", max="3", desired="2"))
    assert (one.least, one.desired, one.most) == (1, 2, 3)
    inner = "\n".join(f"  {line}" for line in group("b").splitlines())
    listed = f"---\n{group('a')}---\nkind: List\nitems:\n-\n{inner}\n"
    assert [one.name for one in read_groups(listed)] == ["a", "b"]
    assert read_groups(group())[0].most == 200


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "it has no Node"),
        ("{", "it is no YAML"),
        ("- a", "a document is no object"),
        ("kind: Pod", "object 0 is not of kind Node"),
        ("kind: List\nitems: 3", "items of a List are a list"),
        (group(capacity="{cpu: 2}"), "no status.capacity with cpu and memory"),
        (group(capacity="{cpu: x, memory: 1}"), "Node 0: "),
        (group("a_b"), "a group's name has"),
        (group("n" * 58), "a group's name has"),
        (group(min="-1"), "is no number from 0 to 999999"),
        (group(max="9999999"), "is no number from 0 to 999999"),
        (group(min="3", max="2"), "do not go together"),
        (group(desired="3", max="2"), "do not go together"),
        (f"{group()}---\n{group()}", "group small is there twice"),
        ("#" * (kwok.LARGEST_FILE + 1), "it is larger than 4 MiB"),
    ],
)
def test_a_file_that_says_no_groups_is_refused(text: str, problem: str) -> None:
    with pytest.raises(BadGroups) as refused:
        read_groups(text)
    assert problem in str(refused.value)


def test_more_groups_than_there_may_be_are_refused() -> None:
    text = io.StringIO()
    for number in range(MOST_GROUPS + 1):
        text.write(f"---\n{group(f'g{number}')}")
    with pytest.raises(BadGroups, match=f"more than {MOST_GROUPS} groups"):
        read_groups(text.getvalue())


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ("address: 10.0.0.1:8086", "only a Unix socket"),
        ("address: unix:///x\ncert: a", "belong together"),
        ("address: unix:///x\ngrpc_timeout: soon", "no duration"),
        ("address: unix:///x\ngrpc_timeout: 2m", "at most 1m"),
        ("address: unix:///x\nport: 5", "port"),
        ("address: a:1\ncert: /none\nkey: /none\ncacert: /none", "/none"),
        ("x" * (LARGEST_CONFIG + 1), "larger than 1 MiB"),
        ("{", "--cloud-config"),
    ],
)
def test_a_cloud_config_that_leads_nowhere_is_refused(tmp_path: Path, config: str, problem: str) -> None:
    file = tmp_path / "cloud.yaml"
    file.write_text(config)
    options = AutoscalerOptions(cloud_provider=CloudProvider.EXTERNAL, cloud_config=file)
    with pytest.raises(UsageError) as refused:
        options.provider()
    assert problem in refused.value.message


def test_a_provider_is_named_with_its_file(tmp_path: Path) -> None:
    for options, flag in (
        (AutoscalerOptions(), "--node-groups"),
        (AutoscalerOptions(cloud_provider=CloudProvider.EXTERNAL), "--cloud-config"),
        (AutoscalerOptions(node_groups=tmp_path / "none"), "No such file"),
    ):
        with pytest.raises(UsageError) as refused:
            options.provider()
        assert flag in refused.value.message
    assert callable(AutoscalerOptions(node_groups=EXAMPLE).provider())


@pytest.mark.parametrize("text", [None, "{", "- a", "a: [x]", "1: x", "1: [2]", "#" * (LARGEST_MAP + 1)])
def test_a_map_of_priorities_that_cannot_be_read_filters_nothing(text: str | None) -> None:
    assert priorities_of(text).problem.startswith("Wrong configuration for priority expander:")


def test_a_map_of_priorities_is_read() -> None:
    assert priorities_of("10:\n- .*spot.*\n50:\n- .*\n").patterns == {10: [".*spot.*"], 50: [".*"]}
