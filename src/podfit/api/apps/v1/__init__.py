"""apps/v1."""
