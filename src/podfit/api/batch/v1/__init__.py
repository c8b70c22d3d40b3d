"""batch/v1."""
