"""Structural schemas of custom resources: pruning, defaulting, validation and CEL rules.

    document ─ prune ─▶ only declared members ─ fill ─▶ with defaults ─ errors, list_errors, rules ─▶ what is wrong

Everything here is a pure function of a schema (`JSONSchemaProps`) and a document; nothing is changed
in place, and what does not change is shared. `shapes` tells patching and apply how a document falls apart, `jsonpath`
reads the paths of columns, scales and selectable fields, `rules` evaluates CEL.
"""
