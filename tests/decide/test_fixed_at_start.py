"""Which settings of a container's process stay what they are when its size becomes another one."""

from typing import Any

import pytest

from podfit.api.core.v1.pods.types import PodSpec
from podfit.api.meta.codec import convert
from podfit.decide.pod.fixed_at_start import fixed_at_start


def told(**container: Any) -> list[str]:
    spec = convert({"containers": [{"name": "app", "image": "i", **container}]}, PodSpec)
    return [str(setting) for setting in fixed_at_start(spec)]


HEAP = '"app" does not follow its memory: -Xmx512m is the largest Java heap'
SHARE = (
    '"app" does not follow its memory until it restarts: the JVM takes its largest heap from the memory limit when it '
    "starts"
)


@pytest.mark.parametrize(
    ("container", "lines"),
    [
        ({"command": ["java", "-Xmx512m", "-jar", "a.jar"]}, [HEAP]),
        ({"command": ["sh", "-c"], "args": ["exec /usr/bin/java '-Xmx512m' -jar a.jar"]}, [HEAP]),
        ({"command": ["/opt/jdk/bin/java", "-jar", "a.jar"]}, [SHARE]),
        ({"command": ["/opt/java/run"]}, []),
        ({"command": ["cat", "a.java"]}, []),
        ({"env": [{"name": "JAVA_TOOL_OPTIONS", "value": "-XX:MaxRAMPercentage=75"}]}, [SHARE]),
        (
            {"env": [{"name": "JAVA_TOOL_OPTIONS", "value": "-Dfoo -Xmx1g -XX:ActiveProcessorCount=2"}]},
            [
                '"app" does not follow its memory: -Xmx1g in JAVA_TOOL_OPTIONS is the largest Java heap',
                (
                    '"app" does not follow its cpu: -XX:ActiveProcessorCount=2 in JAVA_TOOL_OPTIONS is how many '
                    "processors Java counts"
                ),
            ],
        ),
        (
            {"env": [{"name": "NODE_OPTIONS", "value": "--max-old-space-size=400"}]},
            ['"app" does not follow its memory: --max-old-space-size=400 in NODE_OPTIONS is Node.js\' largest heap'],
        ),
        (
            {"env": [{"name": "GOMEMLIMIT", "value": "400MiB"}, {"name": "GOMAXPROCS", "value": "2"}]},
            [
                '"app" does not follow its memory: GOMEMLIMIT=400MiB is the memory that Go\'s collector aims at',
                '"app" does not follow its cpu: GOMAXPROCS=2 is how many threads Go runs at once',
            ],
        ),
        ({"env": [{"name": "GOMEMLIMIT", "value": "off"}, {"name": "GOMAXPROCS", "value": ""}]}, []),
        (
            {"env": [{"name": "CORES", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}]},
            ['"app" does not follow its cpu until it restarts: CORES has the limit of the time when it started'],
        ),
        (
            {
                "env": [
                    {
                        "name": "DB",
                        "valueFrom": {"resourceFieldRef": {"resource": "requests.memory", "containerName": "db"}},
                    }
                ]
            },
            [
                (
                    '"app" does not follow the memory of "db" until it restarts: DB has the request of the time when '
                    "it started"
                )
            ],
        ),
    ],
)
def test_what_a_process_reads_once(container: dict[str, Any], lines: list[str]) -> None:
    assert told(**container) == lines


def test_a_setting_is_not_repeated_at_any_length() -> None:
    (line,) = told(command=["java", "-Xmx" + "9" * 100_000])
    assert len(line) < 200
