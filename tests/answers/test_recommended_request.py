"""`plan --from-vpa`, `resize --to-recommendation`, `export --recommended`: a VPA's sizes, as its updater gives them."""

from pathlib import Path
from typing import Any

import pytest

from answers.conversation import PODS, Conversation, pod
from answers.test_recommend import VPAS, provided
from answers.test_top import DEPLOYMENT
from cli.test_questions import ask

BARE = {"metadata": {"name": "web", "namespace": "shop"}}


def shop(**more: Any) -> Conversation:
    """One pod of the Deployment web, which is Guaranteed and has 500m and 256Mi; its VPA says 200m and 128Mi."""
    own = pod("web-1")
    own["metadata"]["labels"] = {"app": "web"}
    conversation = Conversation(36, own)
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    vpa = {"metadata": {"name": "v", "namespace": "shop"}, "spec": {"targetRef": target}, "status": provided()}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": own["spec"]}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    conversation.documents |= {
        PODS: {"items": [own]},
        DEPLOYMENT: {**BARE, "spec": spec},
        VPAS: {"items": [vpa]},
    } | more
    return conversation


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["plan", "deployment/web", "--from-vpa"], 0, "500m/500m → 200m/200m"),
        (["plan", "deployment/web", "--from-vpa"], 0, "podfit resize deployment/web --to-recommendation"),
        (["plan", "deployment/web", "--from-vpa"], 0, "the template is not changed: vpa/v gives new pods their sizes"),
        (["plan", "deployment/web", "--from-vpa", "--cpu", "1"], 2, "--from-vpa cannot be combined with --cpu"),
        (["plan", "deployment/web", "--from-vpa", "--undo"], 2, "--from-vpa cannot be combined with --undo"),
        (["plan", "pod/web-1", "--from-vpa"], 2, "--from-vpa needs a workload"),
        (["resize", "pod/web-1", "--to-recommendation"], 2, "--from-vpa needs a workload"),
        (["export", "deployment/web", "--recommended"], 0, "cpu: 200m"),
        (["export", "deployment/web", "--recommended", "--drift"], 2, "--recommended needs a workload"),
    ],
    ids=str,
)
async def test_a_vpas_sizes_are_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, said: str
) -> None:
    assert await ask(tmp_path, shop(), *arguments) == code
    shown = capsys.readouterr()
    assert said in shown.out + shown.err


@pytest.mark.parametrize("vpas", [404, {"items": []}], ids=["none served", "none there"])
async def test_without_a_recommendation_it_says_where_to_get_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], vpas: Any
) -> None:
    conversation = shop(**{VPAS: vpas})
    assert await ask(tmp_path, conversation, "plan", "deployment/web", "--from-vpa") == 2
    assert "no VPA in namespace shop recommends sizes for deployment/web" in capsys.readouterr().err
