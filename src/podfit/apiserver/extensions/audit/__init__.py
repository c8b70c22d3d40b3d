"""The audit log: who asked for what, when, and what came of it, a line of JSON for each.

`options` loads nothing of the rest: whoever composes a server names them.
"""
