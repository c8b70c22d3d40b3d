"""Node groups of another program, by upstream's external gRPC protocol (cloudprovider/externalgrpc)."""
