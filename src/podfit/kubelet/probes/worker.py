"""The probe worker: one probe of one container at its period; `decide.pod.probing` judges the results."""

import asyncio
from collections.abc import Awaitable, Callable

from podfit.api.core.v1.pods.probes import Probe
from podfit.core.clock import Clock
from podfit.decide.pod.probing import Action, ProbedInstance, ProbeKind, ProbeSettings, ProbeState, Result, due, heard
from podfit.kubelet.probes.checks import ProbeOutcome, ProbeResult

Ask = Callable[[], Awaitable[ProbeOutcome]]

_RESULTS = {
    ProbeResult.SUCCESS: Result.SUCCESS,
    ProbeResult.WARNING: Result.SUCCESS,
    ProbeResult.FAILURE: Result.FAILURE,
}


class ProbeWorker:
    """`show` says what the container is now, `run` asks; `changed` is called when another result holds."""

    def __init__(self, kind: ProbeKind, probe: Probe, clock: Clock, *, changed: Callable[[], None]) -> None:
        self.seen = ProbedInstance()
        self.state = ProbeState()
        self.period = float(probe.period_seconds or 10)
        self._settings = ProbeSettings(
            kind=kind,
            initial_delay=probe.initial_delay_seconds,
            failure_threshold=probe.failure_threshold or 3,
            success_threshold=probe.success_threshold or 1,
        )
        self._clock, self._changed = clock, changed
        self._ask: Ask | None = None
        self._sooner = asyncio.Event()

    def show(self, seen: ProbedInstance, ask: Ask) -> Action:
        """What is to be done next. Whether a container is ready now is asked at once: whoever looks waits for it."""
        self.seen, self._ask = seen, ask
        self.state, action = due(self.state, seen, self._now(), self._settings)
        if self._settings.kind is ProbeKind.READINESS and self.state.result is not Result.SUCCESS:
            self._sooner.set()
        return action

    async def run(self, pause: float) -> None:
        """Until the container will not run again. `pause` in seconds keeps the probes of a node from moving in step."""
        await self._clock.sleep(pause)
        while await self._once():
            await self._wait()

    async def _wait(self) -> None:
        self._sooner.clear()
        timer = self._clock.call_later(self.period, self._sooner.set)
        try:
            await self._sooner.wait()
        finally:
            timer.cancel()

    async def _once(self) -> bool:
        """Whether there is more to ask."""
        before = self.state
        self.state, action = due(before, self.seen, self._now(), self._settings)
        if action is Action.ASK and self._ask is not None:
            asked = self.state.id
            outcome = await self._ask()
            result = _RESULTS.get(outcome.verdict)
            if result is not None and self.state.id == asked:
                self.state = heard(self.state, result, self._settings)
        if self.state.result is not before.result:
            self._changed()
        return action is not Action.END

    def _now(self) -> float:
        return self._clock.now().timestamp()
