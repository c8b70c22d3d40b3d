"""`podfit token`: what a machine needs to join a cluster."""

import asyncio
import os
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from podfit.cli import exits, render
from podfit.cli.cluster_questions import ContextName, Kubeconfig
from podfit.client import kubeconfig_edit
from podfit.client.kubeconfig import Access, contexts, find
from podfit.net.addresses import is_loopback_url
from podfit.net.files import write_atomic
from podfit.net.system import SystemClock
from podfit.process.control.bootstrap import bootstrap_access, create_token
from podfit.process.errors import UsageError

LONGEST_HOURS = 24 * 365
NAME = "bootstrap"


def create(
    *,
    ttl: Annotated[float, Parameter(help="Hours until it is over.")] = 24.0,
    description: Annotated[str, Parameter(help="What it is for.")] = "",
    server: Annotated[
        str,
        Parameter(
            help="URL of the API server for the machine. [default: the kubeconfig's, or what the cluster "
            "advertises if that is loopback]"
        ),
    ] = "",
    out: Annotated[Path | None, Parameter(help="Write it into this file, mode 0600. [default: stdout]")] = None,
    context: ContextName = "",
    kubeconfig: Kubeconfig = None,
) -> int:
    """Make a bootstrap token and print the kubeconfig for podfit kubelet --bootstrap-kubeconfig."""

    if not 0 < ttl <= LONGEST_HOURS:
        raise UsageError(f"--ttl {ttl:g}: must be above 0 and at most {LONGEST_HOURS} hours")
    if out is not None and any(name != NAME for name in contexts(out)):
        raise UsageError(f"--out {out} has contexts already; name a file of its own, for it goes to another machine")
    access = find(os.environ, kubeconfig, context=context)

    async def make() -> Access:
        client = access.client()
        try:
            token = await create_token(client, SystemClock(), seconds=ttl * 3600, description=description)
            return await bootstrap_access(client, access, token, server=server)
        finally:
            await client.close()

    joining = asyncio.run(make())
    content = kubeconfig_edit.standalone(NAME, joining)
    if out is not None:
        write_atomic(out, content)
    else:
        render.block(content.decode().rstrip("\n"))
    render.progress(f"join a machine:  podfit kubelet --bootstrap-kubeconfig {out or 'FILE'}   (good for {ttl:g} h)")
    if is_loopback_url(joining.server):
        render.progress(
            f"warning: {joining.server} is reached from this machine only; start the API server with "
            "--bind-address, or name it with --server"
        )
    return exits.DONE
