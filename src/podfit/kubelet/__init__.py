"""The shell of the node machine: it watches its pods, takes the machine's steps, persists before it acts, and reports.

kubelet        composes the rooms below, each of which imports only from lines under its own
server         what the node answers over HTTPS; `housekeeping` what is left of pods that nobody speaks for
pods           one worker a pod, which does in turn what the pod needs next
allocation     decides with `decide.node`; `actuation` carries a resize out; `static` pods from files
status         what the API is told of a pod; `volumes`, `images`; `node` the Node object, its Lease and pressure
config         what the node is told about itself
managers       CPUs and memory of a container's own
runtime        containers over CRI or simulated; `checkpoints` allocated, actuated; `sources` ConfigMaps, Secrets
cgroup         the pods' cgroups; `disk` the kubelet's own files
"""
