"""nft, the one door to the kernel's packet filter: a text of rules is one transaction, all of it or nothing."""

import asyncio
import shutil

SECONDS = 30.0
PACKAGE = "nftables"


class NftFailed(Exception):
    """The text is what nft said, or that it is missing."""


async def apply(text: str) -> None:
    """Raises NftFailed; then nothing has changed."""
    await _nft(text, "-f", "-")


async def remove(table: str) -> None:
    """The table of IPv4 with all in it, if it is there. Raises NftFailed."""
    await apply(f"table ip {table}\ndelete table ip {table}\n")


async def tables() -> frozenset[str]:
    """Those of IPv4. Raises NftFailed."""
    lines = (await _nft("", "list", "tables", "ip")).splitlines()
    return frozenset(line.split()[2] for line in lines if len(line.split()) == 3)


async def _nft(text: str, *arguments: str) -> str:
    program = shutil.which("nft") or shutil.which("nft", path="/usr/sbin:/sbin")
    if program is None:
        raise NftFailed(f"nft is not installed: apt-get install {PACKAGE}")
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(program, *arguments, stdin=pipe, stdout=pipe, stderr=pipe)
    try:
        async with asyncio.timeout(SECONDS):
            said, errors = await process.communicate(text.encode())
    except BaseException as error:
        process.kill()
        await process.wait()
        if isinstance(error, TimeoutError):
            raise NftFailed(f"nft has not ended after {SECONDS:.0f} s") from error
        raise
    if process.returncode:
        raise NftFailed(errors.decode(errors="replace").strip()[:2000] or f"nft ended with {process.returncode}")
    return said.decode(errors="replace")
