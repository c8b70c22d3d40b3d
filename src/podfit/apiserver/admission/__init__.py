"""Admission: what the cluster's policies change about a write, and what they refuse. One plugin a file.

Plugins run in upstream's order. `mutate` runs before validation, `validate` after it, so an invalid request is a 422
even where a quota would refuse it too (R-077).
"""
