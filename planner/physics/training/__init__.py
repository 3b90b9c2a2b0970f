"""What a training step needs: memory, compute, traffic, time."""
