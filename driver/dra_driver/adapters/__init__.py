"""gRPC, sockets, the Kubernetes API, files: everything that touches the world."""
