"""Fleet: what carries all jobs, within the nodes there are, limits and deadlines."""
