"""VPAs of a cluster: what they recommend, step by step, and what their updater does next."""
