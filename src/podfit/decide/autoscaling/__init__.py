"""What the Vertical Pod Autoscaler decides, as pure functions; `podfit.vpa` and the answers call them (docs/vpa.md).

    samples ─▶ model ─▶ estimate ─▶ recommendation ─▶ capping ─▶ status of the VPA
                                                                     │
                   admission (new pods)  ◀── pod_level (LimitRanges) ┤
                   update    (running pods) ◀────────────────────────┘

`bank` and what stands on it import NumPy; nothing outside of the VPA imports those modules.
"""
