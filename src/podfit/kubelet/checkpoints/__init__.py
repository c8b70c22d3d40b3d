"""The allocated and the actuated resources of the node's pods, on disk.

entries      the same in memory, for a simulated node
checkpoint   what the kubelet asks: get, put, forget; `file` the file and its journal
format       the published JSON with its checksum; `journal` the changes since the file was written
"""
