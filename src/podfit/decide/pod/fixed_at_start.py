"""Settings of a container's process that do not follow a resize: read from its spec, without a look at the process.

    -Xmx512m, --max-old-space-size=400, GOMEMLIMIT      a size of their own, whatever the container's is
    a Java heap without -Xmx                            a share of the memory limit, taken when the JVM starts
    a variable from resourceFieldRef                    the amount as it was when the container started

The second and third are right again after a restart of the container, the first only after an edit.
"""

import re
from collections.abc import Iterator

import msgspec

from podfit.api.core.v1.pods.aggregate import all_containers
from podfit.api.core.v1.pods.containers import Container, EnvVar
from podfit.api.core.v1.pods.types import PodSpec
from podfit.core.resources import CPU, MEMORY

LONGEST = 60
"""Characters of a setting that are repeated."""
_JAVA_HEAP, _NODE_HEAP = "is the largest Java heap", "is Node.js' largest heap"
_OPTIONS = (
    (re.compile(r"(?<![^\s'\"=])-Xmx\w+"), MEMORY, _JAVA_HEAP),
    (re.compile(r"(?<![^\s'\"=])-XX:MaxHeapSize=\w+"), MEMORY, _JAVA_HEAP),
    (re.compile(r"(?<![^\s'\"=])-XX:ActiveProcessorCount=\w+"), CPU, "is how many processors Java counts"),
    (re.compile(r"(?<![^\s'\"=])--max[-_]old[-_]space[-_]size[= ]\w+"), MEMORY, _NODE_HEAP),
)
"""Pattern in command lines and the variables of options, resource, what it stands for."""
_VARIABLES = {
    "GOMEMLIMIT": (MEMORY, "is the memory that Go's collector aims at"),
    "GOMAXPROCS": (CPU, "is how many threads Go runs at once"),
}
_JAVA_OPTIONS = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "JAVA_OPTS")
_OPTION_VARIABLES = (*_JAVA_OPTIONS, "NODE_OPTIONS")
_JAVA = re.compile(r"(?<![^\s'\"=])(?:\S*/)?java(?![^\s'\"])")
_GO_OFF = "off"


class FixedSetting(msgspec.Struct, frozen=True):
    """`setting` of `container` keeps what it says when `sides` (requests, limits or both) of `resource` of the
    container `sized` become others: mostly the same one.

    `what` is what it is, as an end of a sentence. `lasting`: a restart of the container does not change it.
    """

    container: str
    sized: str
    resource: str
    setting: str
    what: str
    sides: tuple[str, ...] = ("requests", "limits")
    lasting: bool = True

    def __str__(self) -> str:
        until = "" if self.lasting else " until it restarts"
        amount = f"its {self.resource}" if self.sized == self.container else f'the {self.resource} of "{self.sized}"'
        return f'"{self.container}" does not follow {amount}{until}: {self.setting} {self.what}'


def fixed_at_start(spec: PodSpec) -> Iterator[FixedSetting]:
    """The settings of all containers, sidecars among them; variables whose values are elsewhere are not looked at."""
    for container in all_containers(spec):
        own = list(_options(container))
        yield from own
        if not any(setting.what == _JAVA_HEAP for setting in own) and _runs_java(container):
            what = "takes its largest heap from the memory limit when it starts"
            name = container.name
            yield FixedSetting(name, name, MEMORY, "the JVM", what, sides=("limits",), lasting=False)
        for variable in container.env:
            yield from _variable(variable, container.name)


def _options(container: Container) -> Iterator[FixedSetting]:
    texts = [("", " ".join((*container.command, *container.args)))]
    texts += [(variable.name, variable.value) for variable in container.env if variable.name in _OPTION_VARIABLES]
    for variable_name, text in texts:
        for pattern, resource, what in _OPTIONS:
            if option := pattern.search(text):
                where = f" in {variable_name}" if variable_name else ""
                name = container.name
                yield FixedSetting(name, name, resource, f"{option[0][:LONGEST]}{where}", what)


def _runs_java(container: Container) -> bool:
    words = " ".join((*container.command, *container.args))
    return bool(_JAVA.search(words)) or any(variable.name in _JAVA_OPTIONS for variable in container.env)


def _variable(variable: EnvVar, container: str) -> Iterator[FixedSetting]:
    source = variable.value_from.resource_field_ref if variable.value_from is not None else None
    if source is not None:
        side, _, resource = source.resource.partition(".")
        sized = source.container_name or container
        what = f"has the {side[:-1]} of the time when it started"
        yield FixedSetting(container, sized, resource, variable.name, what, sides=(side,), lasting=False)
    elif variable.name in _VARIABLES and variable.value and variable.value != _GO_OFF:
        resource, what = _VARIABLES[variable.name]
        yield FixedSetting(container, container, resource, f"{variable.name}={variable.value[:LONGEST]}", what)
