"""What the server says of itself, by path: no page needs a resource or a verb."""
