"""The verbs that run a component: `up`, which runs all of them, and each alone."""
