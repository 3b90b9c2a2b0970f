"""What it costs: offers, failures and the time they take."""
