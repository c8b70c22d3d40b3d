"""What a deployment does: which replica set is of which revision, how many pods each has, what the status says."""
