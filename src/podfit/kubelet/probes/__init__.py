"""Probes of containers: whether they have started, live and are ready.

ProbeManager   what is known of each container (`Health`); one task for each probe
Checks         runs one probe: exec through the runtime, http, tcp and gRPC through `Reach`
               (`SimulatedChecks`: a test says which container of a simulated node is not ready)
Reach          the network of a node: real, or that of a simulated one, where everything answers
"""
