"""autoscaling/v1."""
