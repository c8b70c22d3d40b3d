"""The store on etcd, 3.4 or later, over gRPC. Importing this package loads no gRPC; opening a store does."""
