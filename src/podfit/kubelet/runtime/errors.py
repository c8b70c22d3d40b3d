"""The errors of a container runtime.

The kubelet tells five cases apart and no more, so the gRPC codes are folded into this tree:

    CRIError                 the runtime refused; the text is its own, verbatim
    ├── NotFound             no such sandbox, container or image; normal between a list and an inspect (R-181)
    ├── Unimplemented        the runtime lacks the call (R-139); normal for optional ones
    ├── TimedOut             a command in a container took longer than it was given
    └── Unavailable          the socket is gone, or no answer came before the deadline
"""


class CRIError(Exception):
    """`str(error)` is the runtime's own text, which ends up in conditions and events unchanged."""


class NotFound(CRIError):
    """No sandbox, container or image of that id or name."""


class Unimplemented(CRIError):
    """The runtime does not have this call; older containerd says so with code Unknown and `not implemented`."""


class TimedOut(CRIError):
    """The command was ended, because it took longer than it may."""


class Unavailable(CRIError):
    """Nobody answered: the runtime is down, restarting, or too slow. The call may or may not have taken effect."""
