"""Which podfit this is: its version, and the commit that it was made of.

`git archive`, of which packages are made (`scripts/package`), writes the commit into `commit.txt`. A checkout still has
the placeholder there, and git is asked.
"""

import subprocess
from pathlib import Path

from podfit import __version__

PACKAGE = Path(__file__).resolve().parents[2]
SHOWN = 12  # characters of a commit
GIT_SECONDS = 5.0


def described() -> str:
    """`podfit 0.1.0 (commit 0123456789ab)`; a checkout with changes says so, and an unknown commit too."""
    return f"podfit {__version__} ({commit() or 'commit unknown'})"


def commit() -> str:
    """`commit 0123456789ab`, and `, changed` where files differ from it; empty where nothing tells."""
    written = (PACKAGE / "commit.txt").read_text(encoding="ascii").strip()
    if not written.startswith("$"):
        return f"commit {written[:SHOWN]}"
    checkout = PACKAGE.parents[1]
    if not (checkout / ".git").exists():
        return ""
    found = _git(checkout, "rev-parse", "HEAD")
    changed = found and _git(checkout, "status", "--porcelain", "--untracked-files=no")
    return f"commit {found[:SHOWN]}{', changed' if changed else ''}" if found else ""


def _git(checkout: Path, *words: str) -> str:
    """What git prints, or nothing where it is missing or refuses."""
    command = ["git", "-C", str(checkout), *words]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=GIT_SECONDS).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
