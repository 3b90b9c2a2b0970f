"""Layouts to columns: bounds, pruning, staging of what is left, with an account of all of it."""
