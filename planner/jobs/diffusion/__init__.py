"""Diffusion models as work: what trains them, on what, for how long."""
