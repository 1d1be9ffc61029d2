"""Example devices, one small file each."""
