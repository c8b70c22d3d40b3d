"""The gateway's address as one of this machine's own, whether or not a pod is there: a route of the table `local`.

Each pod's veth has the address as well, but without any pod the API server would not be reached at it.
"""

import shutil

from podfit.net.programs import ran

SECONDS = 10.0


class RouteFailed(Exception):
    """What ip said."""


async def keep_gateway(address: str) -> None:
    """Raises RouteFailed."""
    await _ip("route", "replace", "local", address, "dev", "lo")


async def forget_gateway(address: str) -> None:
    """Fine if it is gone. Raises RouteFailed."""
    try:
        await _ip("route", "del", "local", address, "dev", "lo")
    except RouteFailed as error:
        if "No such process" not in str(error):
            raise


async def _ip(*arguments: str) -> None:
    program = shutil.which("ip") or shutil.which("ip", path="/usr/sbin:/sbin")
    if program is None:
        raise RouteFailed("ip is not installed: apt-get install iproute2")
    try:
        code, _, errors = await ran(program, *arguments, seconds=SECONDS)
    except (TimeoutError, OSError) as error:
        raise RouteFailed(f"ip {' '.join(arguments)}: {error!r}") from error
    if code:
        raise RouteFailed(errors.strip() or f"ip ended with {code}")
