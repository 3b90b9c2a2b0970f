"""What could be done: the axes of a layout, the rules that make one legal, and all legal layouts as columns."""
