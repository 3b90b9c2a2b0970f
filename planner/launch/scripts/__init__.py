"""Scripts that are written out as they are, and run where a stack is installed."""
