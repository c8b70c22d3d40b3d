"""The log of a simulated container: one line, which says that nothing runs."""

from datetime import UTC, datetime
from pathlib import Path

from podfit.core.times import format_micro
from podfit.decide.pod.lifecycle.facts import ContainerStatus
from podfit.kubelet.runtime.errors import CRIError
from podfit.kubelet.runtime.simulated.state import NANO


def begin_log(container: ContainerStatus) -> None:
    """Write the file unless it is there, or the container has none. Raises CRIError."""
    path = Path(container.log_path)
    if not container.log_path or path.exists():
        return
    when = format_micro(datetime.fromtimestamp(container.created_at / NANO, UTC))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{when} stdout F this container is simulated: it runs nothing\n")
    except OSError as error:
        raise CRIError(f"cannot begin the log of {container.id}: {error.strerror}") from error
