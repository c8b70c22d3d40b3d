"""A node's process: this machine, what runs on it, its credentials, and the kubelet alone or as part of `podfit up`."""
