"""The `v1.PodStatus` of a pod, made from facts without I/O or clock; `writer` carries it to the API.

    facts = StatusInput(pod=…, allocated=…, previous=…, observed=Observation(…), machine=…, node_ip=…, now=…, …)
    generate(facts) -> PodStatus          the status as it should stand in the API now
    rejected(pod, reason, message, now)   the status of a pod that was not admitted

`observed` holds the runtime's own types; `previous` is the status last generated (or the API's after a start).
"""
