"""A node's proxy: Services and EndpointSlices become one table of nftables (`decide.services` says which rules).

proxier.py     follows the objects, sends what has changed as one transaction
conntrack.py   ends flows of UDP that would go on to where nobody answers
"""
