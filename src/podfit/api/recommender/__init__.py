"""recommender.podfit.dev: what a recommender would give a pod, asked while the caller waits."""
