"""The kinds of the group autoscaling, a module each version."""
