"""Strategies: what the generic handlers ask about a kind. How a new object is completed, what of an update counts,
which rules refuse it, how it ends.

strategy  the two structs, and what holds for kinds without anything special
table     from a kind to its strategy; a file for each group that has special ones: apiextensions, apps, batch,
          certificates, coordination, core (pods apart), events; custom for the kinds that a cluster declares

The rules themselves are pure functions of `api` and `decide`.
"""
