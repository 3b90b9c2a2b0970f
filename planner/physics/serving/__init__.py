"""What serving a model takes on each GPU."""
