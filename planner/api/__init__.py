"""Python: the public functions, and how their arguments are read."""
