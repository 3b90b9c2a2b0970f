"""One file for each target, found by being there: its `EMITTER` writes the program of a plan."""
