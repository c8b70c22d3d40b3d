"""Bursts: limits that the node moves by itself, inside the ceiling that the API has granted (docs/burst.md).

record     which limits are moved, durably; the pod as the node then desires it, and the condition that says so
rule       looks at the cgroups and asks `decide.autoscaling.burst` what follows
"""
