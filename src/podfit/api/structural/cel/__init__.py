"""CEL as Kubernetes speaks it, on cel-python: values by their schema, Kubernetes' libraries, and what is refused.

Loaded by `api.structural.rules` when the first rule is met.
"""
