"""Replication controllers: types and validation."""
