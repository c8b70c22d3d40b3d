"""`podfit resize --also-template` as a user sees it."""

from pathlib import Path

import pytest

from answers.conversation import PODS, Conversation, pod
from answers.workshop import APPS, SIZES, Workshop, template
from cli.test_questions import ask
from podfit.actions.resize_pods import Options, Outcome
from podfit.answers.plan.result import FITS, Plan, PodPlan
from podfit.cli.questions.resize import Done, summary

CPU = ["deployment/web", "--cpu", "700m", "--also-template"]


def workshop(**more: object) -> Workshop:
    shop = Workshop()
    shop.add_deployment(**more)
    return shop


async def test_the_plan_says_what_becomes_of_the_template(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shop = workshop()
    assert await ask(tmp_path, shop, "plan", *CPU) == 0
    out = capsys.readouterr().out
    assert "template of deployment/web: cpu 500m/500m → 700m/700m; no rollout: replicaset/web-abc gets the same" in out
    assert "the next rollout goes back" not in out
    assert "next: podfit resize deployment/web --cpu 700m --also-template" in out
    assert {method for method, _ in shop.asked} == {"GET"}
    assert await ask(tmp_path, shop, "plan", "deployment/web", "--cpu", "700m") == 0
    assert "the next rollout goes back" in capsys.readouterr().out


async def test_pods_first_then_their_template(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shop = workshop()
    assert await ask(tmp_path, shop, "resize", *CPU) == 0
    out = capsys.readouterr().out.splitlines()
    assert [line.partition(" after")[0] for line in out] == [
        "1/2  web-1  cpu 500m/500m → 700m/700m  done",
        "2/2  web-2  cpu 500m/500m → 700m/700m  done",
        "template  deployment/web  cpu 500m/500m → 700m/700m  done: no rollout",
        "2 of 2 pods resized",
    ]
    stored = [path.rpartition("/")[2] for path, _, dry in shop.writes if not dry and path.startswith(APPS)]
    assert (stored, shop.rollouts) == (["web", "web-abc", "web"], 0)


async def test_a_rollout_is_begun_only_when_that_was_allowed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = Workshop()
    document = {
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": template(),
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        },
    }
    shop.add("statefulsets", document)
    arguments = ["resize", "sts/web", "--cpu", "700m", "--also-template"]
    assert await ask(tmp_path, shop, *arguments) == 1
    captured = capsys.readouterr()
    assert (shop.writes, "nothing was changed" in captured.out, "read only" in captured.out) == ([], True, False)
    assert "error: the template of statefulset/web: a rollout replaces every pod" in captured.err
    assert 'kubectl patch statefulset/web --type merge -p \'{"spec":{"updateStrategy"' in captured.err
    assert await ask(tmp_path, shop, *arguments, "--allow-disruption") == 0
    assert shop.sizes("statefulsets")["limits"]["cpu"] == "700m"


async def test_a_template_that_would_be_refused_is_known_before_a_pod_is_touched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = workshop()
    shop.forbidden = (f"{APPS}/deployments/none", f"{APPS}/replicasets/web-abc")
    assert await ask(tmp_path, shop, "resize", *CPU) == 1
    assert "the template of deployment/web would be refused: pods is forbidden" in capsys.readouterr().err
    assert not [path for path, _, dry in shop.writes if not dry]


async def test_the_template_stays_when_a_pod_was_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shop = workshop()
    shop.refuse["resize"] = "quota exceeded"
    assert await ask(tmp_path, shop, "resize", *CPU, "-o", "json") == 1
    assert '"text": "not every pod was resized"' in capsys.readouterr().out
    assert shop.sizes("deployments") == SIZES


async def test_a_pod_has_no_template(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ("plan", "resize"):
        assert await ask(tmp_path, workshop(), verb, "pod/web-1", "--cpu", "1", "--also-template") == 2
        told = "--also-template needs a workload, such as deployment/NAME; pod/web-1 has no template"
        assert told in capsys.readouterr().err


async def test_what_is_accepted_and_has_no_room_is_said_to_wait(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conversation = Conversation(36, pod(), pod("big", cpu="2"))
    conversation.documents[f"{PODS}/web/resize"] = pod()
    assert await ask(tmp_path, conversation, "resize", "pod/web", "--cpu", "3", "--dry-run") == 0
    out = capsys.readouterr().out
    assert "it has to wait: Node didn't have enough resource: cpu, requested: 3, used: 2, capacity: 4\n" in out


async def test_a_size_that_a_pod_has_is_nothing_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conversation = Conversation(36, pod())
    assert await ask(tmp_path, conversation, "resize", "pod/web", "--cpu", "500m") == 0
    assert "nothing to do: 1 pod has that size" in capsys.readouterr().out


def test_pods_that_had_the_size_are_not_counted_as_resized() -> None:
    names = ("web-1", "web-2", "web-3")
    plan = Plan(
        server="v1.36.2", namespace="shop", pods=tuple(PodPlan(pod=name, node="n1", verdict=FITS) for name in names)
    )
    for states, told in (
        (("done", "unchanged", "unchanged"), "1 of 3 pods resized, 2 unchanged"),
        (("done", "waits", "waits"), "1 of 3 pods resized, 2 wait"),
        (("done", "done", "waits"), "2 of 3 pods resized, 1 waits"),
    ):
        outcomes = [Outcome(pod=name, state=state) for name, state in zip(names, states, strict=True)]
        assert summary(Done(plan, outcomes), Options(wait=True)) == told


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("pod/web-1", "--canary", "1"), "--canary needs one workload"),
        (("deployment/web", "--watch", "3s"), "--watch needs --canary"),
        (("deployment/web", "--rollback-on", "oom"), "--rollback-on needs --canary"),
        (("deployment/web", "--canary", "51"), "from 1 to 50 pods"),
        (("deployment/web", "--canary", "1", "--watch", "25h"), "not a duration from 1s to 24h"),
        (("deployment/web", "--canary", "1", "--rollback-on", "crash"), "'crash' is none of restart, oom, unready"),
    ],
)
async def test_what_is_wrong_with_a_canary_is_said_before_anything_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], says: str
) -> None:
    shop = workshop()
    assert await ask(tmp_path, shop, "resize", *arguments, "--cpu", "1") == 2
    assert says in capsys.readouterr().err
