"""A runtime that runs nothing: containers are states, time is the Clock's. The default without root, and the test bed.
"""

from podfit.kubelet.runtime.simulated.runtime import SimulatedRuntime

__all__ = ["SimulatedRuntime"]
