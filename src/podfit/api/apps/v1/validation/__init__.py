"""Validation of deployments, replica sets, stateful sets and daemon sets."""
