"""What a stateful set does: pods with a number each, the claims that go with them, in order or all at once."""
