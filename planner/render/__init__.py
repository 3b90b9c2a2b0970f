"""How it reads: plans and estimates as text for people."""
