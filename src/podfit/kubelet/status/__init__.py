"""The whole `v1.PodStatus` of a pod, made from facts: no I/O, no clock, the same answer for the same input.

    generate(StatusInput(pod=…, allocated=…, observed=Observation(…), previous=…, …)) -> PodStatus

`observed` holds the runtime's own types; `previous` is the status last generated (or the API's after a start).
"""
