"""Ends pods when the node runs short of something, or when they use more local storage than they may.

evictor.py          what is done, every ten seconds
local_storage.py    what pods have on the node's disk
reclaim.py          what is removed before a pod has to go
"""
