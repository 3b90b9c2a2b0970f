"""What we say: the Plan, its JSON, its provenance."""
