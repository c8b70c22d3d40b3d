"""The real kubectl, command by command, against the API server alone; `commands.txt` has what is typed and answered."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

import pytest

from support.manifests import WHOLE, deployment, made, revision
from support.up import KEPT_AS_WRITTEN, Up, run

pytestmark = [pytest.mark.kubectl, pytest.mark.xdist_group("kubectl-commands")]

NODE = "paper"
SETTINGS = {"KUBECTL_APPLYSET": "true"}
_SECTION = re.compile(r"^\[(.+)\]$", re.MULTILINE)
_LINE = re.compile(r"(?P<typed>.*?)(?: < (?P<input>\w+))? =>(?: !(?P<code>\d+))?(?: (?P<part>.*))?")


class Command(NamedTuple):
    typed: str
    input: str
    code: int
    part: str


def sections() -> dict[str, list[Command]]:
    _, *parts = _SECTION.split(Path(__file__).with_name("commands.txt").read_text())
    found = zip(parts[::2], parts[1::2], strict=True)
    return {name: [_command(line) for line in text.splitlines() if line] for name, text in found}


def _command(line: str) -> Command:
    found = _LINE.fullmatch(line)
    assert found, line
    return Command(found["typed"], found["input"] or "", int(found["code"] or 0), found["part"] or "")


def settings(name: str, colour: str) -> dict[str, Any]:
    return made("v1", "ConfigMap", name, labels={"part": "settings"}, data={"colour": colour})


INPUTS = {
    "absent": settings("absent", "red"),
    "settings": settings("settings", "red"),
    "other": settings("other", "red"),
    "third": settings("third", "green"),
    "later": settings("third", "blue"),
    "role": made(
        "rbac.authorization.k8s.io/v1",
        "ClusterRole",
        "watcher",
        rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["watch"]}],
    ),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """A cluster whose only node is an object."""
    up = Up(tmp_path_factory.mktemp("commands"))
    up.start(*KEPT_AS_WRITTEN, node="none")
    up.apply(made("v1", "Node", NODE))
    (up.root / "text").write_text("hello")
    (up.root / "bytes").write_bytes(b"\xff\x00\x7f")
    (up.root / "env").write_text("A=1\nB=two\n")
    yield up
    assert up.down().code == 0


def furnish(server: Up, namespace: str) -> None:
    """What the commands that change something find: one of each kind, and a deployment with a history."""
    selecting = {"selector": {"matchLabels": {"app": "web"}}, "template": deployment("web")["spec"]["template"]}
    old = {"selector": {"app": "web"}, "template": selecting["template"]}
    things = (
        deployment("web"),
        settings("settings", "red"),
        made("v1", "Pod", "whole", spec=WHOLE),
        made("v1", "Pod", "placed", spec={"nodeName": NODE, "containers": [{"name": "c", "image": "i"}]}),
        made("v1", "Service", "web", spec={"ports": [{"port": 80}]}),
        made("apps/v1", "DaemonSet", "every", spec=selecting),
        made("v1", "ReplicationController", "old", spec=old),
        made("apps/v1", "StatefulSet", "kept", spec={**selecting, "serviceName": "web"}),
        made(
            "rbac.authorization.k8s.io/v1",
            "RoleBinding",
            "views",
            roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        ),
    )
    server.ok("create", "-n", namespace, "-f", "-", stdin="\n".join(map(json.dumps, things)))
    owner = json.loads(server.ok("get", "deployment", "web", "-n", namespace, "-o", "json"))
    sets = (revision(owner, 1, image="i:1", cause="first"), revision(owner, 2, image="i", cause="second"))
    server.ok("create", "-n", namespace, "-f", "-", stdin="\n".join(map(json.dumps, sets)))


@pytest.mark.parametrize("section", sections())
def test_commands(server: Up, section: str) -> None:
    server.ok("create", "namespace", section)
    if section == "changed":
        furnish(server, section)
    words = {"FILES": str(server.root), "NODE": NODE, "HERE": section}
    wrong = []
    for command in sections()[section]:
        typed = shlex.split(Template(command.typed).safe_substitute(words))
        given = json.dumps(INPUTS[command.input]) if command.input else None
        full = server.kubectl_command(*typed[:1], "-n", section, *typed[1:])
        answer = run(*full, stdin=given, env=SETTINGS)
        said = answer.err if command.code and answer.err else answer.out + answer.err
        if answer.code != command.code or Template(command.part).safe_substitute(words) not in said:
            wrong.append(f"{command.typed}\n  wanted {command.code}: {command.part}\n  got {answer}")
    assert not wrong, "\n".join(wrong)
