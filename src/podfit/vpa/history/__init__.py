"""Usage history from before a recommender began, from a server that speaks PromQL."""
