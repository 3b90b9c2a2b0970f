"""Every verb: plan, estimate, compare, explain, hold, simulate, validate, calibrate, whatever the kind of work."""
