"""What was used before a recommender began, from a server that speaks PromQL."""
