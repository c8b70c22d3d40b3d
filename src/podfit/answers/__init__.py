"""Answers before action: what a resize would do, and why one waits, on any cluster and read only.

    resize_request  --cpu, --memory and a manifest, laid over a pod
    target     KIND/NAME, and the pods behind it
    snapshot   everything an answer needs, read once
    ages       what servers older than 1.36 do differently
    plan       snapshot and resize request to a verdict for each pod (`plan_verdicts`, `plan_result`, `plan_notes`)
    why        snapshot to the reasons of what is; `why_node` those of a node, `pod_state` how it stands with a resize
    why_vpa    the same for the numbers of a VerticalPodAutoscaler
    top        usage beside sizes, read by `usage`, `throttling` and `vpas`
    export     snapshot to what the next deploy has to say
    drift      snapshot and template to where they differ
    template   what a change of a workload's template would come to

Nothing here writes: what carries a plan out is `podfit.actions`.

`plan`, `why`, `export`, `drift` and the arranging of `top` are pure: the same `decide` functions as in the API server
and on the node, applied to a snapshot.
"""
