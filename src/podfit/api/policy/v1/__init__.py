"""policy/v1."""
