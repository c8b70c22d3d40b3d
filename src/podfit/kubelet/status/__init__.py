"""The pod's status on its way to the API: `patch` is what differs, `writer` sends it until it is there.

`podfit.decide.lifecycle.status` makes it.
"""
