"""What a step of reinforcement learning takes: answers drawn to the last one, log-probabilities, updates, copies."""
