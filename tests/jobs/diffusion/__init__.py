"""Training diffusion models."""
