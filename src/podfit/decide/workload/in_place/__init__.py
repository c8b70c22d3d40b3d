"""Rollouts in place: a template that differs in resources alone resizes the pods that run instead of replacing them.

asking   whether a workload asks for it, which templates are fit for it, and the size that a pod is to have
fates    what is to become of each pod, and how many may be restarted at once

What follows for the workload as a whole is said beside its other steps: `deployment/in_place.py`,
`stateful/in_place.py`, `daemon/in_place.py`.
"""
