"""The watch on the runtime where its stream of events tells nothing."""

import asyncio
from collections.abc import AsyncIterator
from typing import cast

from podfit.kubelet.pods.known_pods import KnownPods
from podfit.kubelet.pods.runtime_watch import RuntimeWatch
from podfit.kubelet.runtime.protocol import Runtime
from podfit.kubelet.runtime.types import ContainerEvent
from support.clock import FakeClock


class Silent:
    """Ends the stream in order before anything was told."""

    asked = 0

    async def events(self) -> AsyncIterator[ContainerEvent]:
        self.asked += 1
        return self._none()

    async def _none(self) -> AsyncIterator[ContainerEvent]:
        nothing: tuple[ContainerEvent, ...] = ()
        for event in nothing:
            yield event


async def test_a_stream_that_ends_before_it_tells_anything_is_not_asked_for_again() -> None:
    runtime = Silent()
    watch = RuntimeWatch(cast(Runtime, runtime), cast(KnownPods, None), clock=FakeClock())
    await asyncio.wait_for(watch.listen(), 5)
    assert runtime.asked == 1
