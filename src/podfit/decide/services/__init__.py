"""Services as rules of nftables: objects in, text out.

backends.py   which endpoints answer for each port of a Service, inside and from outside
rules.py      the rules of one Service, and of pods that have ports of their node
ruleset.py    the table: whole, and what is sent when something changes
"""
