"""nft, the one door to the kernel's packet filter: a text of rules is one transaction, all of it or nothing."""

import shutil

from podfit.net.programs import ran

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
    try:
        code, said, errors = await ran(program, *arguments, given=text.encode(), seconds=SECONDS)
    except TimeoutError as error:
        raise NftFailed(f"nft has not ended after {SECONDS:.0f} s") from error
    except OSError as error:
        raise NftFailed(f"nft cannot be started: {error}") from error
    if code:
        raise NftFailed(errors.strip()[:2000] or f"nft ended with {code}")
    return said
