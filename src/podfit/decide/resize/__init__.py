"""The resize of a running pod.

checks          what the API checks of a resize, in its order: one list of data
validation      what a request on `pods/resize` may change, and the words of a refusal
node_support    whether the node of the pod could carry it out
verdict         fits, deferred or infeasible on a node
queue_order     in which order pending resizes are tried
steps           what is done to a running pod: pod cgroup, containers, restarts, in order
memory_shrink   whether a memory limit may be lowered now; `guarded_shrink` lowers it step by step
reported_status what a status says of resources; `by_status` reads it back
proportion      the limit that goes with a new request
windows         limits in the words of a Windows runtime
"""
