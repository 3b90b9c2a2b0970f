"""Programs that measure the planner and write what they find."""
