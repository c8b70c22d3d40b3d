"""What the Vertical Pod Autoscaler decides, as pure functions; `podfit.vpa` and the answers call them (docs/vpa.md).
The horizontal one is in `horizontal/`, which imports no NumPy.

    samples ─▶ model ─▶ estimate ─▶ recommendation ─▶ capping ─▶ status of the VPA
                                                                     │
          admission (new pods)  ◀── limit_range_capping ─────────────┤
          update    (running pods: resize or evict, and in_place) ◀──┘

`histograms` (decaying, of all containers) and what stands on it import NumPy; nothing outside of the VPA imports those
modules.
"""
