"""What the horizontal pod autoscaler decides, by upstream's rules, as pure functions without NumPy.

scale, readings ─▶ metrics ─▶ replicas ─▶ limits ─▶ passing: how many, and why; then conditions, status, events
                                 │
                             pods, ratios
"""
