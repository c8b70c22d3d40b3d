"""Allocation: desired pods come in, allocated pods go out.

Every decision is the node machine's (`podfit.decide.node`); this package persists and carries out what it says.

    manager      AllocationManager: events in, effects carried out
    rebuild      what a damaged checkpoint held, from the runtime and the last status
    metrics      resizes under upstream's names; desired, allocated and actual sizes
"""
