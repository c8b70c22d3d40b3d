"""Objects on their way into the store and out of it.

strategies            what may be written where, for each kind: creation, update, subresources
stored                keys, encodings and revisions
patch, apply          the three kinds of patch; server-side apply and managed fields
versions, converting  kinds that are served in a version that is not the stored one
allocations           addresses and node ports of services
encryption            encryption at rest
"""
