"""Prometheus' text format: labels that were read once in an answer are not read again, and nobody can tell."""

from hypothesis import example, given
from hypothesis import strategies as st

from podfit.net.exposition import Sample, samples

NAMES = ("cpu", "memory")
TEXT = st.text(alphabet='ax1 }{#,="\\\\\t', max_size=8)
QUOTED = TEXT.map(lambda text: text.replace("\\", r"\\").replace('"', r"\""))
LABELS = st.dictionaries(st.sampled_from(("pod", "namespace", "b")), QUOTED, max_size=2).map(
    lambda labels: "{" + ",".join(f'{name}="{text}"' for name, text in labels.items()) + "}"
)
NUMBERS = st.sampled_from(("1", "2.5 17", "NaN", "+Inf 3", "-1e3", "", "x", "1 y", "1 2 3", '1 2 # {a="b"} 3'))
LINES = st.builds("{}{} {}".format, st.sampled_from(NAMES), LABELS | TEXT, NUMBERS)


def shown(found: Sample) -> str:
    return repr((found.name, sorted(found.labels.items()), found.value, found.time))


@given(st.lists(LINES, max_size=3))
@example(["cpu{} 1", "cpu } 1"])
@example(["cpu{} 1", "cpu {} 1"])
def test_lines_say_together_what_each_says_alone(lines: list[str]) -> None:
    lines = [line.replace("\n", "") for line in lines] * 2
    alone = [shown(sample) for line in lines for sample in samples(line, NAMES)]
    assert [shown(sample) for sample in samples("\n".join(lines), NAMES)] == alone
