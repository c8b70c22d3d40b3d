"""Errors that keep a cluster from starting or stopping, each with cause, evidence and a command that helps.

ClusterError
 ├─ UsageError        the options contradict each other     exit 2
 └─ MachineError      this machine lacks something          exit 3
"""


class ClusterError(Exception):
    """`evidence` are lines below the message, `fix` pairs of a word and a command."""

    exit_code = 3

    def __init__(self, message: str, *, evidence: tuple[str, ...] = (), fix: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.evidence = evidence
        self.fix = fix


class UsageError(ClusterError):
    exit_code = 2


class MachineError(ClusterError):
    exit_code = 3


def reason(error: OSError) -> str:
    """In a few words, for a message that names the file itself."""
    return (error.strerror or str(error)).lower()
