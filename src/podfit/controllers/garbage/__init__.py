"""Garbage collection: what belongs to an owner goes with it, before it, or stays, as the deletion says."""

from podfit.controllers.garbage.collector import GarbageCollector

__all__ = ["GarbageCollector"]
