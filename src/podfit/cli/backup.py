"""`podfit backup` and `podfit restore`: what a data directory holds, in a file and back."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from podfit.cli import exits, render
from podfit.cli.output import NarrowOutputOption, Output
from podfit.net.system import SystemClock
from podfit.process.data.backup import Manifest, back_up, check_target
from podfit.process.data.backup import restore as put_back
from podfit.process.data.data_dir import DataDir, default_data_dir

DataOption = Annotated[Path | None, Parameter(help=f"Data directory. [default: {default_data_dir()}]")]


def backup(
    file: Annotated[Path, Parameter(help="Where to write it; readable by its owner only.")],
    /,
    *,
    data: DataOption = None,
    pki: Annotated[bool, Parameter(help="With the authority's key and the key of tokens.")] = True,
    overwrite: Annotated[bool, Parameter(help="Replace a file that is there.", negative="")] = False,
    output: NarrowOutputOption = Output.TEXT,
) -> int:
    """Write the objects of a cluster, as they are at one moment, into a file. The cluster may run meanwhile."""

    check_target(file, overwrite=overwrite)
    made = back_up(DataDir.at(data), file, keys=pki, now=SystemClock().now())
    if not output.for_people:
        render.document({"file": str(file), **_facts(made)}, output)
        return exits.DONE
    keys = "with the keys of the cluster" if made.has_keys else "without the keys of the cluster"
    render.line(f"{file}: {made.objects} objects at revision {made.revision}, {keys}")
    return exits.DONE


def restore(
    file: Annotated[Path, Parameter(help="What `podfit backup` wrote.")],
    /,
    *,
    data: DataOption = None,
    replace: Annotated[
        bool, Parameter(help="Also over a store that is there, which is kept aside.", negative="")
    ] = False,
    output: NarrowOutputOption = Output.TEXT,
) -> int:
    """Put a backup into a data directory on which no cluster runs; `podfit up` then starts with its objects."""

    where = DataDir.at(data)
    done = put_back(where, file, replace=replace, now=SystemClock().now())
    if not output.for_people:
        aside = str(done.aside) if done.aside is not None else None
        told = {**_facts(done.manifest), "revision": done.revision, "replaced": aside}
        render.document({"data": str(where.root), **told}, output)
        return exits.DONE
    keys = "" if done.manifest.has_keys else "; without keys: kubeconfigs and tokens from before are not valid here"
    what = f"{done.manifest.objects} objects of {done.manifest.taken}"
    render.line(f"{where.root}: {what}, at revision {done.revision}{keys}")
    if done.aside is not None:
        render.line(f"what was there is kept in {done.aside}")
    return exits.DONE


def _facts(made: Manifest) -> dict[str, Any]:
    return {"objects": made.objects, "revision": made.revision, "taken": made.taken, "keys": made.has_keys}
