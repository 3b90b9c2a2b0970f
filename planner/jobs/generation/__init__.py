"""Diffusion models that are run: ways to make images and clips, services and batches of them."""
