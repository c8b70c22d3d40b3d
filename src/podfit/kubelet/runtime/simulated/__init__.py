"""The simulated runtime: containers are states, time is the Clock's. For tests, and the default without root."""

from podfit.kubelet.runtime.simulated.runtime import SimulatedRuntime

__all__ = ["SimulatedRuntime"]
