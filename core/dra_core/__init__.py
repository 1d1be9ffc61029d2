"""Values and rules of Dynamic Resource Allocation (DRA) for Kubernetes.

Everything in here is pure: no I/O, no clock, no logging, no framework. Programs hand
in plain data and act on what they get back.
"""

__version__ = "0.1.0.dev0"
