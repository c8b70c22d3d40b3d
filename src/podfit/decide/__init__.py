"""Every decision, pure: values in, frozen verdicts out. No I/O, no clock, no randomness but what is handed in.

resize        the heart: `checks` (what the API checks, in order), `validation`, `verdict` (fits, deferred, infeasible),
              `queue_order`, `steps` (of the actuation, with the restarts), `memory_shrink`, `reported_status`
node          the node machine: admission, allocation, the retry queue, victims for a critical pod; `room` beside it
lifecycle     a pod's life on a node: what is started, stopped and told of it
pod           what a pod counts for, its QoS class, its environment, its restart policy
placement     filters, scores, preemption: the scheduler's decisions
capacity      how many nodes pending pods need, and which node may go: drain rules, estimates, utilization
managers      the static CPU and memory manager policies
cgroup        from millicores and bytes to what the kernel takes
limits        LimitRange and ResourceQuota
workload      what controllers decide: disruption, ownership, namespaces
autoscaling   the VPA's decisions
node_rights   what a kubelet's credential may do
"""
