"""The registry: how objects are stored, converted, patched and validated.

strategies      what the handlers ask about a kind: creation, update, subresources, deletion
stored          keys, encodings and revisions; `list_cache` keeps the bytes of lists
patch, apply    the three kinds of patch; server-side apply and managed fields
converting_store   kinds that are served in a version that is not the stored one
allocations     addresses and node ports of services; `pending_allocations` are those of requests under way
removal         how objects end
bounded_checks  validation that may take long because a user says so
change_watch    what a server keeps in its process follows the store's watch
encryption      encryption at rest
"""
