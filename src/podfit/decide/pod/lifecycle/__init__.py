"""The life of a pod on its node, from its sandbox to its last status. Pure.

facts                what the runtime and the probes report
actions              what to start and to stop next
backoff              how long a container that keeps ending waits (CrashLoopBackOff)
termination          what is stopped at the end, and with which grace
status               the PodStatus and its phase; `conditions`, `container_statuses`: parts of it
"""
