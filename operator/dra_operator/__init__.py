"""The operator: evicts pods from tainted devices, gently and in order."""
