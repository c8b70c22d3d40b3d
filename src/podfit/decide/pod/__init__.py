"""A pod by itself: what it counts for, its QoS class, its allocated form, environment, restart policy."""
