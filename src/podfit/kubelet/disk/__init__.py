"""The kubelet's own files: writes with a limit of time, and paths that a container cannot lead elsewhere."""
