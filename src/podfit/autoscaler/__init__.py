"""The cluster autoscaler: nodes of groups come and go with what pods ask for (docs/cluster-autoscaler.md).

informers ─▶ gathering.py ─▶ decide.capacity.machine.step ─▶ carry_out.py ─▶ provider, taints, evictions, events
                                    ▲                            │
                                    └────── what came of it ─────┘
"""
