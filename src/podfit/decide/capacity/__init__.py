"""Capacity: how many nodes a cluster needs, and which of them may go.

Everything that asks whether a pod would fit asks `decide.placement`, on nodes that are there or could be.
"""
