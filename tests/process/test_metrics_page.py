"""docs/metrics.md says of every metric what the code declares, and of no other."""

import re
from pathlib import Path

from kubelet.harness import Node
from podfit.api.core.v1.nodes.types import Node as Kind
from podfit.client.events import EventRecorder
from podfit.client.informers import Informers
from podfit.core.features import FeatureGates
from podfit.metrics.scraper import ScrapeSettings
from podfit.metrics.server import MetricsServer
from podfit.net.metrics import Metrics
from podfit.scheduler.scheduler import NAME, Profile, Scheduler
from podfit.vpa.admission.controller import AdmissionController
from podfit.vpa.admission.controller import AdmissionSettings as AdmissionSettings
from podfit.vpa.recommender.recommender import Recommender
from podfit.vpa.recommender.settings import RecommenderSettings
from podfit.vpa.updater.settings import UpdaterSettings as UpdaterSettings
from podfit.vpa.updater.updater import Updater
from support.clock import FakeClock
from support.server import running_server

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
ROW = re.compile(r"^\| `([a-z_]+)` \| (counter|gauge|histogram) \| ([a-z0-9_, ]*) ?\| (.+) \|$")

Shown = dict[str, tuple[str, tuple[str, ...]]]


def described() -> Shown:
    rows = filter(None, map(ROW.match, PAGE.read_text().splitlines()))
    return {row[1]: (row[2], tuple(filter(None, row[3].strip().split(", ")))) for row in rows}


def declared(*metrics: Metrics) -> Shown:
    return {declared.name: (declared.type, declared.labels) for one in metrics for declared in one.declared}


async def unasked(node: Kind) -> str:
    raise AssertionError(f"{node.metadata.name} is asked")


async def test_the_page_lists_what_there_is(tmp_path: Path) -> None:
    node, clock = Node(tmp_path / "node"), FakeClock()
    async with running_server(tmp_path) as server:
        recorder = EventRecorder(server.client, component=NAME, clock=clock)
        informers = Informers(server.client, clock)
        scheduler = Scheduler(server.client, informers, profiles=[Profile(recorder)], clock=clock, gates=FeatureGates())
        recommender = Recommender(server.client, clock=clock, settings=RecommenderSettings())
        updater = Updater(server.client, clock=clock, settings=UpdaterSettings())
        admission = AdmissionController(server.client, clock=clock, settings=AdmissionSettings())
        vpa = recommender.metrics, updater.metrics, admission.metrics
        usage = Metrics()
        MetricsServer(server.client, unasked, clock=clock, settings=ScrapeSettings(), metrics=usage)
        there = declared(node.kubelet.metrics, scheduler.metrics, server.api.metrics, *vpa, usage)
    assert described() == there
