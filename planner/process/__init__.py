"""This program as it runs: its version, workers that end with their parent, Ctrl-C at any moment."""
