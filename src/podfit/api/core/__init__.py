"""The core group, whose kinds are in `v1` in a folder each."""
