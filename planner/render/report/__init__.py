"""A plan as one HTML page that needs nothing else."""
