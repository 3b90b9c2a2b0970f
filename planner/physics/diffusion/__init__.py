"""What a diffusion model needs: parameters, FLOPs, bytes and seconds of a step."""
