"""Training jobs, and what holds a model: layouts searched to a proven choice."""
