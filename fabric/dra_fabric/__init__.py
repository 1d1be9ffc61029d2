"""A simulated fabric: devices that are attached to nodes by a manager of their own.

It stands for a vendor's product: ``python -m dra_fabric`` is the manager, a process with an
inventory, a latency, a capacity and faults; :mod:`dra_fabric.client` is what a vendor would ship to
speak to it. Nothing here knows Kubernetes.
"""
