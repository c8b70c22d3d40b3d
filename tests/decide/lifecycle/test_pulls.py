"""Images of a pod's containers, step by step: `traces` below are read as a script, one line for each step."""

import pytest

from podfit.decide.lifecycle.pulls import Effect, Event, ImageLooked, ImagePulls, PullEnded, Tell, Wanted, step

TRACES = {
    "it is there": """
        0 look app:1 IfNotPresent id-1      Pulled; use id-1
        0 look app:1 - id-1                 Pulled; use id-1
        0 look app:1 Never id-1             Pulled; use id-1
    """,
    "latest may move": """
        0 look app:latest - id-1            Pulling; pull app:latest
        0 look app Always id-1              Pulling; pull app
        0 look app IfNotPresent id-1        Pulled; use id-1
        3 ended app:latest id-2             Pulled; use id-2
    """,
    "it may not be pulled": """
        0 look app:1 Never -                ErrImageNeverPull, Failed; refuse ErrImageNeverPull 10
    """,
    "it is no image": """
        0 want Upper:1                      InspectFailed, Failed; refuse InvalidImageName 10
        0 want app:1                        lookforimage app:1
    """,
    "each failure waits longer, and a success forgets": """
        0 look app:1 - -                    Pulling; pull app:1
        1 failed app:1 gone                 Failed, Failed; refuse ErrImagePull 1
        2 look app:1 - -                    BackOff, Failed; refuse ImagePullBackOff 9
        10 look app:1 - -                   BackOff, Failed; refuse ImagePullBackOff 1
        11 look app:1 - -                   Pulling; pull app:1
        12 failed app:1 gone                Failed, Failed; refuse ErrImagePull 1
        13 look app:1 - -                   BackOff, Failed; refuse ImagePullBackOff 19
        13 look other:1 - -                 Pulling; pull other:1
        13 look app:1 - id-1                Pulled; use id-1
        32 look app:1 - -                   Pulling; pull app:1
        33 ended app:1 id-1                 Pulled; use id-1
        40 look app:1 Always id-1           Pulling; pull app:1
        41 failed app:1 gone                Failed, Failed; refuse ErrImagePull 1
        41 look app:1 Always id-1           BackOff, Failed; refuse ImagePullBackOff 10
    """,
    "ten minutes forgive": """
        0 failed app:1 gone                 Failed, Failed; refuse ErrImagePull 1
        10 failed app:1 gone                Failed, Failed; refuse ErrImagePull 1
        700 failed app:1 gone               Failed, Failed; refuse ErrImagePull 1
        700 look app:1 - -                  BackOff, Failed; refuse ImagePullBackOff 10
    """,
}


def _event(words: list[str]) -> Event:
    given = ["" if word == "-" else word for word in words]
    match given:
        case ["want", image]:
            return Wanted(image)
        case ["look", image, policy, present]:
            return ImageLooked(image, policy, present)
        case ["failed", image, error]:
            return PullEnded(image, error)
        case ["ended", image, pulled]:
            return PullEnded(image, pulled=pulled, size=10, took=2.5)
    raise ValueError(words)


def _shown(effects: tuple[Effect, ...]) -> str:
    *told, last = effects
    reasons = ", ".join(effect.reason for effect in told if isinstance(effect, Tell))
    fields = [getattr(last, name) for name in last.__struct_fields__ if name != "message"]
    words = [f"{field:g}" if isinstance(field, float) else field for field in fields]
    return "; ".join(filter(None, [reasons, " ".join([type(last).__name__.lower(), *words])]))


@pytest.mark.parametrize("trace", TRACES.values(), ids=TRACES)
def test_a_pod_comes_to_its_images_as_the_script_says(trace: str) -> None:
    pulls = ImagePulls()
    for line in trace.strip().splitlines():
        given, _, expected = line.strip().partition("    ")
        now, *words = given.split()
        pulls, effects = step(pulls, _event(words), now=float(now))
        assert _shown(effects) == expected.strip(), line


def test_what_is_said_is_upstreams() -> None:
    _, pulled = step(ImagePulls(), PullEnded("app:1", pulled="id", size=10, took=2.5), now=0)
    text = 'Successfully pulled image "app:1" in 2.5s (2.5s including waiting). Image size: 10 bytes.'
    assert pulled[0] == Tell("Normal", "Pulled", text)
    failed, told = step(ImagePulls(), PullEnded("app:1", "no such host"), now=0)
    assert [effect.message for effect in told if isinstance(effect, Tell)] == [
        'Failed to pull image "app:1": no such host',
        "Error: ErrImagePull",
    ]
    *_, refusal = step(failed, ImageLooked("app:1", "", ""), now=1)[1]
    assert not isinstance(refusal, Tell)
    assert 'Back-off pulling image "app:1": ErrImagePull: no such host' in str(refusal)
