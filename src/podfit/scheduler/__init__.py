"""Watches pods and nodes, asks `decide.placement` where a pod goes, and binds it."""
