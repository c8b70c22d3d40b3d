"""`podfit demo`: three stories on this machine."""
