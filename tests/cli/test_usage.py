"""Wrong usage: one sentence in kubectl's style, and where to read how it is right. Help without noise."""

import pytest

from podfit.cli import exits
from podfit.cli.app import GROUPS, run, verbs
from podfit.cli.examples import EXAMPLES


@pytest.mark.parametrize(
    ("arguments", "message", "see"),
    [
        (["why", "pod", "web", "api"], 'unexpected argument "api"', "podfit why --help"),
        (["plan", "pod/web", "--cpus", "1"], "unknown flag: --cpus; did you mean --cpu?", "podfit plan --help"),
        (["plan", "pod/web", "--cpu"], "flag needs an argument: --cpu", "podfit plan --help"),
        (["resize"], "a target is required, such as pod/NAME, or -f alone", "podfit resize --help"),
        (["plan"], "a target is required, such as pod/NAME, or -f alone", "podfit plan --help"),
        (["plan", "pod/web"], "one of --cpu, --memory, -f, --from-vpa and --undo is required", "podfit plan --help"),
        (["plan", "pod/web", "--undo", "--cpu", "1"], "--undo cannot be combined with --cpu", "podfit plan --help"),
        (["resize", "pod/web", "-f", "x", "-c", "a"], "-f cannot be combined with --container", "podfit resize --help"),
        (["plan", "web", "--cpu", "1"], "did you mean pod/web?", "podfit plan --help"),
        (["plan", "pod", "--cpu", "1"], "the name of the pod is required: pod/NAME", "podfit plan --help"),
        (["plan", "pod/web", "--memory", "-5MiB"], 'value "-5MiB" for --memory: not a quantity', "podfit plan --help"),
        (["plan", "pod/web", "--cpu", "-10 %"], 'value "-10 %" for --cpu: not a quantity', "podfit plan --help"),
        (["resize", "pod/web", "--cpu", "+-5m"], 'value "+-5m" for --cpu: not a quantity', "podfit resize --help"),
        (["plan", "pod/web", "--memory"], "flag needs an argument: --memory", "podfit plan --help"),
        (["plan", "pod/web", "--memory", "512MB"], "did you mean 512M or 512Mi?", "podfit plan --help"),
        (["plan", "pod/web", "--memory", "512MB"], 'invalid value "512MB" for --memory: not', "podfit plan --help"),
        (["plan", "pod/web", "--cpu", "½"], "did you mean 0.5?", "podfit plan --help"),
        (
            ["plan", "pod/web", "--cpu", "fast"],
            "write it such as 500m, 500m:1 (request:limit) or +20%",
            "podfit plan --help",
        ),
        (["up", "--port", "x"], 'invalid value "x" for --port: not a whole number', "podfit up --help"),
        (["up", "--node", "moon"], 'invalid value "moon" for --node', "podfit up --help"),
        (["plna"], 'unknown command "plna" for "podfit"; did you mean "plan"?', "podfit --help"),
        (["image", "lod"], 'unknown command "lod" for "podfit image"; did you mean "load"?', "podfit image --help"),
        (
            ["resize", "pod/web", "--cpu", "1", "--timeout", "nan"],
            "--timeout: not a duration, such as 90s or 5m",
            "podfit resize --help",
        ),
        (["resize", "pod/web", "--cpu", "1", "--timeout", "3x"], '"3x" for --timeout: not a', "podfit resize --help"),
        (["resize", "pod/web", "--cpu", "1", "--timeout", ""], '"" for --timeout: not a', "podfit resize --help"),
        (
            ["resize", "pod/web", "--cpu", "1", "--timeout=-5"],
            "--timeout: must be 0 or more seconds",
            "podfit resize --help",
        ),
        (["plan", "pod/web", "--cpu", "9" * 5000], f'"{"9" * 40}..." for --cpu', "podfit plan --help"),
        (["export", "pod/web", "-f", "x"], "-f needs --drift", "podfit export --help"),
        (["why", "-A", "pod/web"], "-A cannot be combined with pod/web", "podfit why --help"),
    ],
)
def test_one_sentence_and_the_help_of_the_verb(
    arguments: list[str], message: str, see: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == exits.USAGE
    captured = capsys.readouterr()
    first, second = captured.err.splitlines()
    assert first.startswith("error: ")
    assert message in first
    assert (second, captured.out) == (f"  see:  {see}", "")


@pytest.mark.parametrize("verb", [verb for verb in verbs() if verb not in GROUPS])
def test_help_has_examples_and_exit_codes_and_no_empty_defaults(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*verb.split(), "--help"]) == 0
    told = capsys.readouterr().out
    assert "Exit codes:\n  0 " in told
    assert all(f"  {example.command}\n" in told for example in EXAMPLES[verb])
    assert not any(noise in told for noise in ('[default: ""]', "[default: False]", "[default: ()]"))


def test_help_is_a_verb_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["help", "plan"]) == 0
    told = capsys.readouterr().out
    assert run(["plan", "--help"]) == 0
    assert capsys.readouterr().out == told
