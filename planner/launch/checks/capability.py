"""Compute capabilities of the GPUs that checks make up; of AMD those that ROCm reports for gfx90a, gfx942, gfx950."""

from __future__ import annotations

CAPABILITY = {"pascal": (6, 0), "volta": (7, 0), "turing": (7, 5), "ampere": (8, 0), "ada": (8, 9), "hopper": (9, 0),
              "blackwell": (10, 0), "blackwell-rtx": (12, 0), "cdna2": (9, 0), "cdna3": (9, 4), "cdna4": (9, 5)}
