"""Volumes of pods: made before the containers, refreshed, removed with the pod; every path opened without links."""
