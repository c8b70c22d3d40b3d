"""Answers before action: what a resize would do, and why one waits, on any cluster and read only. Rooms by question:

    facts/        what is read, once: `snapshot`, `target` (KIND/NAME), `usage`, `budgets`; how it is named and shown
    node/         the node machine on what the API tells: `live_node`, `making_room`, and who holds a node's allocation
    autoscaling/  VPAs: what they recommend and why, and what the updater does next
    plan/         `plan` and `resize`: a snapshot and a resize request to a verdict for each pod; `template`
    why/          the reasons of what is: of `pods`, a `node`, a `vpa`, and of nodes that could go (`removable`)
    export, drift, top    what the next deploy has to say; where pods and template differ; usage beside sizes

Nothing here writes: what carries a plan out is `podfit.actions`. Apart from the readers all is pure: the same `decide`
functions as in the API server and on the node, applied to a snapshot.
"""
