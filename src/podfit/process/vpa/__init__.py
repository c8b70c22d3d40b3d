"""The VPA's processes, each for itself, and as parts of `podfit up`."""
