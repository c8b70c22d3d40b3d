"""A cluster inside pytest: real API, scheduler, controllers and kubelet, simulated nodes, and time that a test moves.

    def test_web_grows_without_restart(cluster, clock):
        cluster.apply("web.yaml")
        cluster.wait_for("web", phase="Running")
        clock.advance(hours=2)
        assert cluster.pod("web").restarts == 0

The fixtures come with the package (docs/testing.md); nothing is to be installed or started beside.
"""
