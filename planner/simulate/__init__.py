"""Does it hold: a serving fleet replayed event by event over a trace of requests."""
