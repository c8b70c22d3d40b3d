"""The parts of a placement: what a node looks like to the scheduler, what refuses it, what it is worth.

view ──▶ node_filters, pod_affinity, spread ──▶ score
                 refusals                       ranks        all of them put together by `decide.placement.place`
"""
