"""How far to trust it: published measurements against predictions."""
