"""Every kind of work: what a question of it needs, and what its answer says."""
