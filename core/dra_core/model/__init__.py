"""Frozen values: devices, slices, claims."""
