"""The life of a pod on its node, from its sandbox to its last status, as a machine. Pure.

    step(life, event, at=moment) -> (life, effects)

life          what is remembered; `facts`: what the runtime and the probes report
events        what happens to it; `effects`: what is to be done
machine       `step`: the order of a round; `turns`: beginning and end of a turn; `ending`: of the pod
actions       what to start and to stop next, restarts by policy
backoff       how long a container that keeps ending waits (CrashLoopBackOff)
termination   what is stopped at the end in which order, and with which grace
status        the PodStatus and its phase; `conditions`, `container_statuses`: parts of it

`kubelet/pods/worker.py` feeds it events, `kubelet/pods/world.py` carries effects out; neither decides anything.
"""
