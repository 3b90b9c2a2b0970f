"""Processes and signals: workers that end with their parent, Ctrl-C at any moment."""
