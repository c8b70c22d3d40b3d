"""For which names a server shows a certificate, asked of the server itself."""

import asyncio
import ssl
from urllib.parse import urlsplit

from podfit.net.certificates import hosts_of_der
from podfit.net.reachability import CONNECT_SECONDS, Unreachable


async def names_served(url: str, tls: ssl.SSLContext, *, server_name: str = "") -> frozenset[str]:
    """DNS names and IP addresses of its certificate, and the host of the URL. Raises Unreachable."""
    there = urlsplit(url)
    host = there.hostname or ""
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(
                host, there.port or 443, ssl=tls, server_hostname=server_name or host
            )
    except OSError as error:
        raise Unreachable(f"{url}: {str(error) or type(error).__name__}") from error
    shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.transport.abort()
    return frozenset((host, *(hosts_of_der(shown) if shown else ())))
