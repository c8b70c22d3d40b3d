"""Why pods, nodes and recommendations are as they are."""
