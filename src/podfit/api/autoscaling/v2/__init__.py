"""autoscaling/v2."""
