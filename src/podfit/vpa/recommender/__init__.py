"""Recommends sizes: reads usage and OOMs, writes the status of VPAs and what it must remember into checkpoints."""
