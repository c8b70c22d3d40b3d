"""Plans of resizes: what the API checks, what the node decides, and what follows for containers."""
