"""`planner plan` of a scenario with many jobs: one fleet over a horizon."""
