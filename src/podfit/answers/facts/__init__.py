"""Facts: what questions read from a cluster, as values, and how targets, commands and amounts are named."""
