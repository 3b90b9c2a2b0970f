"""Files that start a plan: a program for its stack, and a job for where it runs."""
