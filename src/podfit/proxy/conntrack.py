"""Ends flows of UDP that the kernel remembers, by the tool conntrack. A connection of TCP ends by itself."""

import logging
import shutil
from collections.abc import Iterable

from podfit.decide.services.backends import StaleFlow
from podfit.net.programs import ran

log = logging.getLogger(__name__)

SECONDS = 10.0
NONE_DELETED = "0 flow entries have been deleted"


async def end_flows(flows: Iterable[StaleFlow]) -> None:
    """What cannot be ended is said; the flow then lasts until its client is silent for half a minute."""
    program = shutil.which("conntrack") or shutil.which("conntrack", path="/usr/sbin:/sbin")
    for flow in flows:
        if program is None:
            log.warning("flows of UDP stay: conntrack is not installed address=%s port=%d", flow.address, flow.port)
            return
        await _end(program, flow)


async def _end(program: str, flow: StaleFlow) -> None:
    wanted = ["-D", "-p", "udp", "--orig-port-dst", str(flow.port)]
    wanted += ["--orig-dst", flow.address] if flow.address else []
    wanted += ["--reply-src", flow.backend] if flow.backend else []
    try:
        code, _, errors = await ran(program, *wanted, seconds=SECONDS)
    except (TimeoutError, OSError) as error:
        log.warning("conntrack has not ended address=%s port=%d error=%r", flow.address, flow.port, error)
        return
    said = errors.strip()
    if code and NONE_DELETED not in said:
        log.warning("flows of UDP stay address=%s port=%d error=%s", flow.address, flow.port, said[:500])
