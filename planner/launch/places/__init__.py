"""One file for each scheduler, found by being there: its `PLACE` writes the job that runs a program."""
