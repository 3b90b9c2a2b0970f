"""The section of docs/validation.md on constants: the rows and sources that each acts on, what one source decides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.table import table
from planner.fit.knobs import FitConstant
from planner.fit.solve import Linearized


def constants(knobs: Sequence[FitConstant], linear: Linearized) -> Iterator[str]:
    """Yield every fitted constant of training, about which `linear` is."""
    yield from ("", "## Constants", "",
                "Each fitted constant of training, the rows and sources that it acts on, and the one source that "
                "decides it, if the others would leave it at its prior: such a constant says as much about that "
                "source as about its cause.",
                "")
    lines = []
    for place in np.flatnonzero(linear.free).tolist():
        knob = knobs[place]
        acting, needed = linear.deciding(place)
        at = knob.start + float(linear.offset[place])
        lines.append([knob.place, knob.field, f"{knob.prior:.4g}", f"{knob.value(at):.4g}",
                      str(int((linear.jacobian[:, place] != 0).sum())), str(len(acting)), ", ".join(needed)])
    yield from table(("entry", "field", "prior", "fitted", "rows", "sources", "one source decides"), lines)
