"""What exists: GPUs, nodes, fabrics, models, prices, stacks and calibration, each figure with its source."""
