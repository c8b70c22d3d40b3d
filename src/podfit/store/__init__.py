"""A revisioned log with watch.

protocol  what a store is; `sqlite` (embedded), `etcd` (shared by several servers) and `memory` (tests) are ones
"""
