"""The history that podfit keeps itself: what is recorded, what a crash and damage leave, and a start from it."""

import asyncio
import os
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from podfit.api.autoscaling_k8s.v1 import RecommendedContainerResources
from podfit.api.core.v1.pods.types import Pod
from podfit.client.pod_usage import PodUsages
from podfit.core.resources import CPU, MEMORY
from podfit.core.selectors import from_map
from podfit.core.times import format_time
from podfit.decide.autoscaling.buckets import CPU_BUCKETS, MEMORY_BUCKETS
from podfit.decide.autoscaling.cluster_state import ClusterState
from podfit.decide.autoscaling.gates import NO_GATES
from podfit.decide.autoscaling.scope import AGGREGATION, POD_POLICY
from podfit.decide.autoscaling.slices import stored
from podfit.decide.autoscaling.tracked import PodKey, VpaKey
from podfit.decide.history.retention import Level, Limits
from podfit.net.metrics import Metrics
from podfit.net.system import SystemClock
from podfit.process.vpa.recommender import recommender_in_up
from podfit.vpa.history.own.compaction import Compaction, Wanted, compact
from podfit.vpa.history.own.files import MOST_DAMAGED, HistoryDirectory
from podfit.vpa.history.own.journal import HEAD, MAGIC, JournalWriter, read_journal
from podfit.vpa.history.own.questions import OwnHistory, Subject
from podfit.vpa.history.own.recorder import LARGEST, Recorder
from podfit.vpa.history.own.records import OomRecord, UsageRecord
from podfit.vpa.history.own.streaming import Asked, Head, OwnPast, Part, frames, own_history
from podfit.vpa.history.past_usage import Block, PastPod
from podfit.vpa.recommender.checkpoints import Checkpoints
from podfit.vpa.recommender.recommender import Recommender
from podfit.vpa.recommender.settings import RecommenderSettings
from podfit.vpa.recommender.starting import PastSource, start
from podfit.vpa.recommender.usage import Sample
from support.clock import FakeClock
from support.own_history import DAY, HOUR, MEBI, compacted, directory, usage_of, write_journal
from support.vpa_world import World, recommending

DAYS8 = 8.0 * DAY
BEGIN = 20_000 * DAY
KILLER = """
import asyncio, sys
from pathlib import Path
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.decide.autoscaling.cluster_state import PodKey
from podfit.net.system import SystemClock
from podfit.vpa.history.own.files import HistoryDirectory
from podfit.vpa.history.own.recorder import Recorder
from podfit.vpa.recommender.usage import Sample

POD = convert({"metadata": {"name": "web", "namespace": "default"}, "spec": {"containers": [{"name": "app"}]}}, Pod)

async def compacting(wanted):
    pass

async def main():
    clock = SystemClock()
    recorder = Recorder(HistoryDirectory(Path(sys.argv[1])), clock, compacting=compacting)
    recorder.knows(lambda key: POD)
    async with asyncio.TaskGroup() as group:
        group.create_task(recorder.run())
        await asyncio.sleep(0)
        for number in range(10**9):
            now = clock.now().timestamp()
            await recorder.usage([Sample(PodKey("default", "web"), "app", now, number, number)])
            print(number, flush=True)
            await asyncio.sleep(0)

asyncio.run(main())
"""


async def in_process(wanted: Wanted) -> None:
    """Compaction without a process."""
    for _ in Compaction(wanted).run():
        pass


class Gathered:
    """A `Past` that was read whole."""

    def __init__(self, pods: dict[PodKey, PastPod], blocks: list[Block]) -> None:
        self.pods, self._blocks = pods, blocks

    async def blocks(self) -> AsyncGenerator[Block, None]:
        for block in self._blocks:
            yield block


def gathered(path: Path, now: float, length: float = DAYS8, tell: Callable[[str], None] = print) -> Gathered:
    """As the process reads that hands it over."""
    head, *parts = frames(Asked(directory=str(path), since=now - length, until=now))
    assert isinstance(head, Head)
    for damaged in head.damaged:
        tell(damaged)
    past = OwnPast(head, cast(asyncio.subprocess.Process, None))
    return Gathered(past.pods, [past.block(part) for part in parts if isinstance(part, Part)])


def samples_of(past: Gathered) -> list[tuple[str, float, float]]:
    """Pod, time and millicores, in the order in which they are replayed."""
    return [
        (block.containers[series][0].name, time, amount)
        for block in past._blocks
        if block.cpu is not None
        for series, time, amount in zip(block.cpu.series, block.cpu.times, block.cpu.amounts, strict=True)
    ]


# ---------------------------------------------------------------- recording, and starting from it


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with recommending(tmp_path / "server") as made:
        yield made


async def begin(world: World, path: Path, **more: Any) -> Recommender:
    recorder = Recorder(HistoryDirectory(path), world.clock, compacting=in_process)
    settings = RecommenderSettings()
    made = Recommender(world.client, clock=world.clock, settings=settings, recorder=recorder, **more)
    await world.run(made.run())
    return made


def within_a_bucket(one: RecommendedContainerResources, other: RecommendedContainerResources) -> None:
    for first, second in ((one.target, other.target), (one.lower_bound, other.lower_bound)):
        cores = [amounts[CPU].milli() / 1000 for amounts in (first, second)]
        memory = [float(amounts[MEMORY].value()) for amounts in (first, second)]
        for pair, buckets in ((cores, CPU_BUCKETS), (memory, MEMORY_BUCKETS)):
            low, high = sorted(pair)
            assert high <= low * 1.05 + buckets.first, pair


async def test_a_start_from_it_recommends_as_living_samples_did(world: World, tmp_path: Path) -> None:
    """Also from a pod that is gone, and from memory that ran out."""
    await world.deployment("web")
    await world.pod("web-0", "web")
    await world.pod("web-1", "web")
    await world.vpa("web")
    await begin(world, tmp_path / "history")
    for minute in range(150):
        for pod in range(2):
            cpu, memory = usage_of(5 * pod, 8 * minute)
            world.usage.used[f"web-{pod}"] = {"app": (f"{cpu}m", str(memory))}
        await world.minutes(1)
        if minute == 100:
            killed = {"reason": "OOMKilled", "finishedAt": format_time(world.clock.now()), "exitCode": 137}
            status = {"name": "app", "ready": False, "restartCount": 1, "image": "i", "imageID": "i"}
            await world.report("web-1", containerStatuses=[{**status, "state": {"running": {}}, "restartCount": 0}])
            await world.report("web-1", containerStatuses=[{**status, "state": {"terminated": killed}}])
        if minute == 120:
            await world.client.delete(Pod, "web-1", "default", grace=0)
            del world.usage.used["web-1"]
    living = (await world.sizes("web"))["app"]
    await world.stop()
    past = gathered(tmp_path / "history", world.clock.now().timestamp())
    assert [len(block.ooms) for block in past._blocks if block.ooms] == [1]
    await world.say_status("web", {"recommendation": None})

    async def read(now: float) -> Gathered:
        return past

    await world.start(history=read)
    world.usage.used.clear()
    await world.minutes(1)
    within_a_bucket((await world.sizes("web"))["app"], living)


@pytest.mark.parametrize("longer", [True, False], ids=["history", "checkpoints"])
async def test_a_start_beside_checkpoints_is_from_what_reaches_further_back(
    world: World, tmp_path: Path, longer: bool
) -> None:
    """As in `podfit up`. What there is of either is told apart by what it says."""
    await world.deployment("web")
    await world.pod("web-0", "web")
    await world.vpa("web")
    world.usage.used["web-0"] = {"app": ("500m", "400Mi")}
    await world.start()
    await world.minutes(150)
    await world.stop()
    world.usage.used["web-0"] = {"app": ("2", "400Mi")}
    await begin(world, tmp_path / "history")
    await world.minutes(60)
    await world.stop()
    past = gathered(tmp_path / "history", world.clock.now().timestamp())
    world.usage.used.clear()
    began = HistoryDirectory(tmp_path / "history").began()
    assert began is not None

    async def read(now: float) -> Gathered:
        return past

    source = PastSource(read=read, began=lambda: began - (3 * HOUR if longer else 0.0))
    recommender = Recommender(world.client, clock=world.clock, settings=RecommenderSettings(), history=source)
    await world.run(recommender.run())
    await world.minutes(1)
    lower = (await world.sizes("web"))["app"].lower_bound[CPU].milli()
    assert (lower > 1500) == longer, "most of what checkpoints know was 500m"
    before = (await world.checkpoints())["web-app"].status.last_update_time
    await world.minutes(2)
    assert (await world.checkpoints())["web-app"].status.last_update_time != before, "checkpoints are written on"


@pytest.mark.parametrize("hangs", [False, True])
async def test_a_history_that_cannot_be_read_leaves_the_checkpoints(world: World, tmp_path: Path, hangs: bool) -> None:
    await world.deployment("web")
    await world.pod("web-0", "web")
    await world.vpa("web")
    world.usage.used["web-0"] = {"app": ("500m", "400Mi")}
    await world.start()
    await world.minutes(30)
    before = (await world.sizes("web"))["app"]
    await world.stop()
    await world.say_status("web", {"recommendation": None})
    world.usage.used.clear()

    async def read(now: float) -> Gathered:
        if hangs:
            await asyncio.Event().wait()
        raise ConnectionError("its reader ended with 1")

    source = PastSource(read=read, began=lambda: 0.0)
    recommender = Recommender(world.client, clock=world.clock, settings=RecommenderSettings(), history=source)
    await world.run(recommender.run())
    await world.minutes(11 if hangs else 1)
    after = (await world.sizes("web"))["app"]
    assert abs(after.target[CPU].milli() - before.target[CPU].milli()) <= before.target[CPU].milli() / 20
    assert HistoryDirectory(tmp_path / "nothing").began() is None


async def test_the_recommender_of_up_starts_from_what_its_recorder_kept(world: World, tmp_path: Path) -> None:
    """By the process that reads it."""
    now = SystemClock().now().timestamp()
    write_journal(directory(tmp_path / "history"), int(now) - 7200, pods=2, minutes=110)
    recorder = Recorder(HistoryDirectory(tmp_path / "history"), world.clock, compacting=in_process)
    usages = PodUsages(world.client, world.clock)
    made = recommender_in_up(world.client, world.clock, Metrics(), NO_GATES, usages, recorder)
    state, key = ClusterState(), VpaKey("default", "web")
    state.set_vpa(key, from_map({"app": "web"}), None)
    await start(state, Checkpoints(world.client, world.clock, state), made._history, SystemClock())
    (container,) = state.found({key: {}})[key].recommendation.container_recommendations
    assert container.target[CPU].milli() > 100, "of pods that are gone"


async def test_slices_and_pods_as_a_whole_start_from_it_too(world: World, tmp_path: Path) -> None:
    await world.deployment("web")
    for number in range(2):
        await world.pod(f"web-{number}", "web", "app", "side")
    await world.vpa("web")
    await world.annotate_vpa("web", {AGGREGATION: "pod", POD_POLICY: '{"mode": "Auto"}'})
    await begin(world, tmp_path / "history")
    for minute in range(90):
        for pod in range(2):
            cpu, memory = usage_of(20 * pod, 8 * minute)
            half = (f"{cpu}m", str(memory))
            world.usage.used[f"web-{pod}"] = {"app": half, "side": half}
        await world.minutes(1)
    living = stored(await world.seen("web")).slices
    assert living.keys() == {"", "web-0", "web-1"}
    await world.stop()
    past = gathered(tmp_path / "history", world.clock.now().timestamp())
    await world.say_status("web", {"recommendation": None, "conditions": []})

    async def read(now: float) -> Gathered:
        return past

    await world.start(history=read)
    world.usage.used.clear()
    await world.minutes(1)
    again = stored(await world.seen("web")).slices
    assert again.keys() == living.keys()
    for name, recommendation in again.items():
        within_a_bucket(recommendation.container_recommendations[0], living[name].container_recommendations[0])


async def test_what_happens_to_a_container_is_recorded(world: World, tmp_path: Path) -> None:
    await world.deployment("web")
    await world.replicaset("web-abc", "web", 1)
    await world.pod("web-0", "web", owner="web-abc", memory="64Mi")
    await world.vpa("web")
    world.usage.used["web-0"] = {"app": ("250m", "100Mi")}
    await begin(world, tmp_path / "history")
    await world.minutes(3)
    resources = {"requests": {"cpu": "300m", "memory": "128Mi"}}
    status = {"name": "app", "ready": True, "restartCount": 0, "image": "i", "imageID": "i", "resources": resources}
    await world.report("web-0", containerStatuses=[{**status, "state": {"running": {}}}])
    now = world.clock.now().timestamp() + 1
    told = OwnHistory(HistoryDirectory(tmp_path / "history")).tell(Subject("default", "Pod", "web-0", now - HOUR, now))
    (container,) = told.containers
    assert (container.workload, container.container) == ("ReplicaSet/web-abc", "app")
    assert [point.cpu for point in container.points if point.cpu is not None] == [250] * 3
    marks = {mark.what: mark for mark in container.marks}
    assert marks["resized"].cpu_request == 300
    assert marks["resized"].memory_request == 128 * MEBI
    assert (await world.sizes("web"))["app"].target[CPU].milli() > 0


# ---------------------------------------------------------------- the journal


async def test_what_was_appended_is_durable_a_minute_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, synced = FakeClock(), [0]
    monkeypatch.setattr(os, "fdatasync", lambda handle: synced.append(os.fstat(handle).st_size))
    recorder = Recorder(HistoryDirectory(tmp_path / "history"), clock, compacting=in_process)
    running = asyncio.create_task(recorder.run())
    await clock.settle()
    recorder.knows(lambda key: None)
    written = []
    for minute in range(30):
        recorder._append([OomRecord(minute, 0, 1)])
        assert recorder._journal is not None
        written.append(recorder._journal.size)
        await clock.advance(60.0)
        assert synced[-1] >= written[-1]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_disk_that_is_full_costs_the_history_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = FakeClock()
    recorder = Recorder(HistoryDirectory(tmp_path / "history"), clock, compacting=in_process)
    running = asyncio.create_task(recorder.run())
    await clock.settle()
    recorder._append([OomRecord(1, 0, 1)])
    write = os.write

    def full(handle: int, data: bytes) -> int:
        if len(data) > 5:
            return write(handle, data[:5])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    recorder._append([OomRecord(2, 0, 1)])
    recorder._append([OomRecord(3, 0, 1)])
    monkeypatch.undo()
    assert [record.message for record in caplog.records if "history" in record.message] == [
        "history not written: [Errno 28] No space left on device"
    ]
    await clock.advance(61.0)
    recorder._append([OomRecord(4, 0, 1)])
    journals = sorted((tmp_path / "history").glob("journal-*"))
    assert [[record.time for record in read_journal(path).records] for path in journals][-1] == [4]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_second_recorder_leaves_the_directory_to_the_first(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = FakeClock()
    recorders = [Recorder(HistoryDirectory(tmp_path / "history"), clock, compacting=in_process) for _ in range(2)]
    running = [asyncio.create_task(recorder.run()) for recorder in recorders]
    await clock.settle()
    assert [recorder._journal is not None for recorder in recorders] == [True, False]
    assert "history not recorded: [Errno 11]" in caplog.text
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)


def test_a_record_that_is_cut_off_is_passed_over_and_damage_is_named(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    writer = JournalWriter(path)
    writer.append([OomRecord(number, 0, 1) for number in range(3)])
    writer.close()
    whole = path.read_bytes()
    length = (len(whole) - len(MAGIC)) // 3
    for cut in range(len(MAGIC), len(whole)):
        path.write_bytes(whole[:cut])
        content = read_journal(path)
        assert (len(content.records), content.damage) == ((cut - len(MAGIC)) // length, "")
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes((whole[place] ^ 1,)) + whole[place + 1 :])
        content = read_journal(path)
        assert content.damage
        assert [record.time for record in content.records] == list(range(max(place - len(MAGIC), 0) // length))
    assert HEAD == 12


async def test_a_journal_has_a_bound(tmp_path: Path) -> None:
    clock = FakeClock()
    recorder = Recorder(HistoryDirectory(tmp_path / "history"), clock, compacting=in_process)
    running = asyncio.create_task(recorder.run())
    await clock.settle()
    many = list(range(100_000))
    for _ in range(40):
        recorder._append([UsageRecord(1, many, many, many, many, many)])
    assert recorder._journal is not None
    assert LARGEST <= recorder._journal.size < LARGEST + (4 << 20)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def killed_once(path: Path, lines: int) -> int:
    """The last reading that a recorder said it had written when it was killed."""
    with subprocess.Popen([sys.executable, "-c", KILLER, str(path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        read = [process.stdout.readline() for _ in range(lines)]
        process.send_signal(signal.SIGKILL)
        whole = "".join((*read, process.stdout.read())).rpartition("\n")[0]
        return int(whole.rpartition("\n")[2])


def lost(path: Path, kills: int) -> int:
    """How many readings are missing after so many kills, of all that were written before one."""
    kept, missing, written = HistoryDirectory(path), 0, 0
    for kill in range(kills):
        last = killed_once(path, 200 + 37 * kill)
        written += last + 1
        newest = max((file for file in kept.files()), key=lambda file: (file.begin, file.serial))
        content = read_journal(kept.path(newest))
        numbers = {record.cpu[0] for record in content.records if isinstance(record, UsageRecord)}
        missing += len(set(range(last + 1)) - numbers) + bool(content.damage)
        if kill % 3 == 1:
            compacted(kept, newest.begin + 1)
            assert {file.level for file in kept.files()} == {Level.PART}
    end = max(file.begin for file in kept.files()) + 1.0 * DAY
    return max(missing, written - len(samples_of(gathered(path, end))))


def test_a_kill_loses_nothing_that_was_written(tmp_path: Path) -> None:
    assert lost(tmp_path, 2) == 0


@pytest.mark.campaign
@pytest.mark.timeout(600)
def test_fifty_kills_lose_nothing_that_was_written(tmp_path: Path, figure: Callable[[str, object], None]) -> None:
    """A recorder that writes a reading with each turn is killed fifty times with SIGKILL, at another place each time;
    every third time its journals become segments. Every reading that it had written is there."""
    assert lost(tmp_path, 50) == 0
    figure("kills", 50)
    figure("readings lost that were written", 0)


# ---------------------------------------------------------------- segments


def test_files_are_their_owners_alone(tmp_path: Path) -> None:
    made = directory(tmp_path / "history")
    write_journal(made, BEGIN)
    compacted(made, BEGIN + 2 * DAY)
    write_journal(made, BEGIN + DAY)
    assert stat.S_IMODE(made.root.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in made.root.iterdir()} == {0o600}


async def test_segments_give_back_what_journals_had(tmp_path: Path) -> None:
    """Part by part, as a day, and while the next journal is written."""
    made = directory(tmp_path / "history")
    for hour in range(3):
        write_journal(made, BEGIN + hour * HOUR, events=hour == 1)
    now = BEGIN + 3.0 * HOUR
    handed = await own_history(made.root, DAYS8, "", print)(now)
    before = samples_of(Gathered(dict(handed.pods), [block async for block in handed.blocks()]))
    assert len(before) == 3 * 60 * 2
    last = write_journal(made, BEGIN + 2 * DAY)
    await compact(Wanted(directory=str(made.root), now=BEGIN + 2.5 * DAY, active=last.name))
    assert [file.level for file in sorted(made.files())] == [Level.DAY, Level.JOURNAL]
    past = gathered(made.root, now)
    assert samples_of(past) == before
    assert sum(len(block.ooms) for block in past._blocks) == 1
    assert len(samples_of(gathered(made.root, BEGIN + 3.0 * DAY))) == 4 * 60 * 2


def test_what_is_rolled_up_keeps_means_and_peaks(tmp_path: Path) -> None:
    made, limits = directory(tmp_path / "history"), Limits(samples=1 * DAY, tens=3 * DAY, hours=6 * DAY)
    write_journal(made, BEGIN, pods=1, events=True)
    minutes = [usage_of(0, BEGIN // 60 + minute) for minute in range(60)]
    for age, level, number in ((2.5, Level.TENS, 6), (4.5, Level.HOURS, 1)):
        compacted(made, BEGIN + age * DAY, limits)
        assert [file.level for file in made.files()] == [level]
        subject = Subject("default", "Deployment", "web", BEGIN, BEGIN + DAY)
        rows, more = OwnHistory(made).rows(subject)
        usage = [row for row in rows if row[1] == "usage"]
        assert (len(usage), more) == (number, False)
        span = 60 // number
        for place, row in enumerate(usage):
            own = minutes[place * span : (place + 1) * span]
            assert abs(row[7] - sum(cpu for cpu, _ in own) / span) <= 1
            assert row[8] == max(cpu for cpu, _ in own)
            assert row[10] == max(memory for _, memory in own)
            assert row[12] == span
        assert {row[1] for row in rows} >= {"sizes", "ooms", "recommendations", "usage"}
    past = gathered(made.root, BEGIN + 5.0 * DAY, length=6.0 * DAY)
    assert [block.cpu.weight for block in past._blocks if block.cpu is not None] == [60]
    compacted(made, BEGIN + 7.5 * DAY, limits)
    assert made.files() == []


@pytest.mark.parametrize("late", [1, HOUR - 61])
def test_what_a_journal_holds_of_the_day_after_is_found(tmp_path: Path, late: int) -> None:
    """A journal that was opened at 23:59:59 belongs to that day, and so does the segment that is made of it."""
    made, midnight = directory(tmp_path), 20_000 * DAY
    write_journal(made, midnight - 1)
    compacted(made, midnight + HOUR)
    asked = Subject("default", "Pod", "web-0", midnight + late, midnight + late + HOUR)
    (container,) = OwnHistory(made).tell(asked).containers
    assert container.points[0].cpu is not None
    compacted(made, midnight + 3 * DAY)
    assert [file.level for file in made.files()] == [Level.DAY]
    assert OwnHistory(made).tell(asked).containers[0].points == container.points


def test_a_damaged_segment_is_set_aside_and_named(tmp_path: Path) -> None:
    made, told = directory(tmp_path / "history"), list[str]()
    for hour in range(3):
        write_journal(made, BEGIN + hour * HOUR)
    compacted(made, BEGIN + 4 * HOUR)
    path = sorted(made.root.glob("part-*"))[1]
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    past = gathered(made.root, BEGIN + 4.0 * HOUR, tell=told.append)
    assert told == [f"{path.name}: its bytes are not those that were written"]
    assert len(samples_of(past)) == 2 * 60 * 2
    assert [left.name for left in made.root.glob("*.damaged")] == [f"{path.name}.damaged"]


def test_a_damaged_journal_counts_up_to_its_damage(tmp_path: Path) -> None:
    made, told = directory(tmp_path / "history"), list[str]()
    journal = write_journal(made, BEGIN)
    content = bytearray(made.path(journal).read_bytes())
    content[len(content) // 2] ^= 1
    made.path(journal).write_bytes(content)
    past = gathered(made.root, BEGIN + 1.0 * HOUR, tell=told.append)
    assert told[0].startswith(f"{journal.name}: at byte ")
    assert 20 < len(samples_of(past)) < 100
    done = compacted(made, BEGIN + 2 * HOUR)
    assert any(line.startswith(f"damaged {journal.name}: at byte") for line in done)
    assert sorted(path.suffix for path in made.root.iterdir()) == [".damaged", ".parquet"]
    for hour in range(MOST_DAMAGED + 3):
        made.path(write_journal(made, BEGIN + hour * HOUR, minutes=1)).write_bytes(b"nonsense")
    compacted(made, BEGIN + 40 * HOUR)
    assert len(list(made.root.glob("*.damaged"))) == MOST_DAMAGED


async def test_a_compaction_that_fails_leaves_journals_and_is_said(tmp_path: Path) -> None:
    made = directory(tmp_path / "history")
    journal = write_journal(made, BEGIN)
    (made.root / f"part-{BEGIN}-0.new").mkdir()
    with pytest.raises(ConnectionError, match=r"compaction ended with 1: .*directory"):
        await compact(Wanted(directory=str(made.root), now=BEGIN + HOUR))
    assert made.files() == [replace(journal, size=made.path(journal).stat().st_size)]


async def test_a_history_that_is_not_there_leaves_the_model_empty(tmp_path: Path) -> None:
    with pytest.raises(ConnectionError, match="reader ended with 1"):
        await own_history(tmp_path / "none", DAYS8, "", print)(1e9)


async def test_a_reading_of_many_containers_takes_a_turn(tmp_path: Path) -> None:
    """Records of 5,000 containers."""
    clock = FakeClock()
    recorder = Recorder(HistoryDirectory(tmp_path / "history"), clock, compacting=in_process)
    running = asyncio.create_task(recorder.run())
    await clock.settle()
    now = clock.now().timestamp()
    read = [Sample(PodKey("default", f"web-{number}"), "app", now, 5, 7) for number in range(5000)]
    recorder._numbers.update({(sample.pod, "app"): number for number, sample in enumerate(read)})
    await recorder.usage(read)
    (path,) = (tmp_path / "history").glob("journal-*")
    (record,) = read_journal(path).records
    assert isinstance(record, UsageRecord)
    assert len(record.numbers) == 5000
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
