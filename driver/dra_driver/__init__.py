"""A kubelet plugin for Dynamic Resource Allocation: framework for vendors, example drivers."""

import os

# Before gRPC is imported: with its fork handlers, external programs started beside a server may
# hang (see dra_driver.commands).
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
