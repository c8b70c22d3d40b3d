"""Requests that do something else than read or write the object that they name: binding, log, scale, eviction, tokens,
and reviews, which are answered and never stored. One file each, called by `server` in place of a verb.
"""
