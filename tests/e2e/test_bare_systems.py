"""From nothing to a resized container in two commands, on systems that were just installed (`scripts/bare-root`)."""

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from podfit import __version__
from support.history import ROOT, need_commit

pytestmark = [pytest.mark.node, pytest.mark.campaign, pytest.mark.timeout(1800), pytest.mark.xdist_group("node")]

SPEC = f"podfit[node] @ file:///podfit/dist/podfit-{__version__}-py3-none-any.whl"
PACKAGES = "pipx containerd runc busybox-static catatonit"
INSTALL = f"apt-get install -y -q --no-install-recommends {PACKAGES}"
FIRST = f"apt-get update -q && {INSTALL} --download-only && date +begun=%s && {INSTALL}"
SECOND = f'pipx run --spec "{SPEC}" podfit demo && date +ended=%s'
KEPT = """
pipx install "{spec}" && export PATH=$PATH:/root/.local/bin && podfit doctor --port 0
touch /begun && podfit up --detach --port 0 && podfit down && pipx uninstall podfit
echo LEFT && find / -xdev -newer /begun -type f -not -path '/var/lib/podfit/*' && find /run -name 'podfit*' && echo END
"""


def in_bare_root(suite: str, command: str) -> str:
    need_commit("HEAD")
    subprocess.run([ROOT / "scripts/package"], check=True, capture_output=True)
    folder = Path(os.environ.get("TMPDIR", "/tmp"), "podfit-bare-roots")
    done = subprocess.run(
        [ROOT / "scripts/bare-root", suite, folder, command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.mark.parametrize("suite", ["bookworm", "trixie"])
def test_two_commands_resize_a_container(suite: str, figure: Callable[[str, object], None]) -> None:
    """Two commands on a bare Debian, under 60 s without what apt downloads: containers resized, all checks passed."""
    told = in_bare_root(suite, f"{FIRST}; {SECOND}")
    assert "all checks passed" in told
    times = dict(re.findall(r"^(begun|ended)=(\d+)$", told, re.MULTILINE))
    seconds = int(times["ended"]) - int(times["begun"])
    figure("seconds, pip's downloads within", seconds)
    assert seconds < 60


@pytest.mark.parametrize("suite", ["bookworm", "trixie"])
def test_uninstalling_leaves_the_data_directory_and_a_kubeconfig(suite: str) -> None:
    """Installed, started, taken down, uninstalled: of files there are the data directory and a kubeconfig."""
    told = in_bare_root(suite, f"{FIRST}; {KEPT.format(spec=SPEC)}")
    left = told.rpartition("LEFT\n")[2].partition("END")[0].split()
    outside = [
        path for path in left if not re.match(r"/root/(\.kube/config$|\.cache/|\.local/((state|share)/)?pipx/)", path)
    ]
    assert outside == []
