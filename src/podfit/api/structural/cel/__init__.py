"""The Common Expression Language as Kubernetes uses it.

    text ─ parse ─▶ tree ─ check ─▶ types ─ estimate ─▶ the most it can cost
                                          └ run ─▶ a function of values that counts what it costs, and ends

`library` names what may be called, `functions` and its neighbours do it, `prices` and `estimated_calls` say what it
costs.
Loaded when the first rule or condition is met.
"""
