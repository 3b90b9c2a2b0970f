"""The version of the planner, which answers and sweeps carry."""

__version__ = "0.1.0"
