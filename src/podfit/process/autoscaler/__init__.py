"""The cluster autoscaler as a process of its own, and inside of `podfit up`."""
