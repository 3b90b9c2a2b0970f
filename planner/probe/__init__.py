"""What this machine reaches: kernels, copies and collectives, measured with torch."""
