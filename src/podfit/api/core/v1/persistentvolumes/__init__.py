"""Persistent volumes and claims: types and validation."""
