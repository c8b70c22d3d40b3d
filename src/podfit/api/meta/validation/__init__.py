"""The rules that every kind obeys: names, labels, metadata, IP addresses."""
