import pytest

from podfit.decide.pod.image_names import problem, pull_policy, split

DIGEST = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("busybox", ("busybox", "", "")),
        ("busybox:1.36", ("busybox", "1.36", "")),
        ("localhost:5000/a/b:1", ("localhost:5000/a/b", "1", "")),
        ("localhost:5000/a/b", ("localhost:5000/a/b", "", "")),
        (f"a/b:1@{DIGEST}", ("a/b", "1", DIGEST)),
    ],
)
def test_parts(image: str, expected: tuple[str, str, str]) -> None:
    assert split(image) == expected
    assert problem(image) == ""


@pytest.mark.parametrize("image", ["", "Upper/case:1", "a:b:c", "a//b", "a@sha256:short", "a:-tag", "-a", "a b"])
def test_what_is_no_reference(image: str) -> None:
    assert "couldn't parse image name" in problem(image)


@pytest.mark.parametrize(
    ("image", "given", "policy"),
    [
        ("busybox", "", "Always"),
        ("busybox:latest", "", "Always"),
        ("busybox:1", "", "IfNotPresent"),
        (f"busybox@{DIGEST}", "", "IfNotPresent"),
        ("busybox:latest", "Never", "Never"),
        ("busybox:1", "Always", "Always"),
    ],
)
def test_a_tag_that_moves_is_pulled_each_time(image: str, given: str, policy: str) -> None:
    assert pull_policy(image, given) == policy
