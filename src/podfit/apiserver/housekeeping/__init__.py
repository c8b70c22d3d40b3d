"""What a server does unasked: it makes what a cluster has from the start, its own service among it, and forgets events
and history when they are old.
"""
