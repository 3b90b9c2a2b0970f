"""What is asked: workload, hardware, sourcing, limits, objective."""
