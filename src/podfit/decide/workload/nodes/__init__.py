"""What is done about nodes that are not well: conditions, taints, and the pods that cannot stay."""
