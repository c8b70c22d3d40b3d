"""What a daemon set does: a pod on every node that its template fits, replaced a few at a time."""
