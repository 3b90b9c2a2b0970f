"""Compute capabilities of the GPUs that checks make up."""

from __future__ import annotations

CAPABILITY = {"volta": (7, 0), "turing": (7, 5), "ampere": (8, 0), "ada": (8, 9), "hopper": (9, 0),
              "blackwell": (10, 0), "blackwell-rtx": (12, 0)}
