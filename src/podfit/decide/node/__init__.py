"""The node machine: everything a node decides about its pods, as `step(state, event) -> (state, effects)`.

    state        NodeState: what the node has, its pods as desired and as allocated, the resizes that wait, conditions
    events       what happened: pods added, updated, deleted, removed; a status generated; actuation reported; a retry
    effects      what to do about it: persist allocations, set events, sync or end pods, wake up later
    machine      `step`, one handler for each event
    admission    may a new pod run here
    resizes      one pass over the resizes that wait
    reservations room kept for critical pods while others end for them
    conditions   PodResizePending and PodResizeInProgress
    messages     the texts of resize events

No I/O, no clock, no randomness. The kubelet (`kubelet.allocation`) carries effects out; `plan` and `why`
(`answers.node.live_node`) take the same steps on what the API tells.
"""
