"""Images: found by the pull policy, fetched once at a time."""
