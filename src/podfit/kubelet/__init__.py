"""The shell of the node machine: it watches its pods, takes the machine's steps, persists before it acts, and reports.

kubelet      composes the rooms below
pods         one worker a pod; `allocation` decides with `decide.node`, `actuation` carries out, `status` reports
runtime      containers over CRI or simulated; `cgroup` the pods' cgroups; `volumes`, `images`, `managers`
node         the Node object, its Lease and pressure; `server` what the node answers over HTTPS; `static` static pods
"""
