"""The intervals of the shipped catalog, about its constants as they stand.

Run `python -m benchmarks.intervals` at the top of the checkout (about two minutes) after a change of physics, of
constants or of evidence. `planner calibrate` does the same after it has fitted the constants of step time anew.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

from planner.ask.calibrate import MEMORY, RESIDUALS, SERVING, STEP, learnt
from planner.catalog.fitted import FITTED
from planner.catalog.load import Catalog, data_root
from planner.evidence.reading import read_evidence
from planner.evidence.spread import residuals_of
from planner.fit.knobs import Knob, knobs_of
from planner.fit.rows import TrainingRows, rows_of
from planner.fit.solve import Linear, about
from planner.fit.write import residual_file
from planner.text_io import write_folder

ROOT = Path(__file__).parents[1]
EVIDENCE = ROOT / "tests" / "evidence"
AS_OF = "2026-11"


def main() -> int:
    """Write the files of residuals."""
    catalog, folder = Catalog(), ROOT / "catalogs" / "calibration"
    names = [name for name in (STEP, MEMORY, SERVING) if not sys.argv[1:] or name in sys.argv[1:]]
    linear = shipped()[1] if STEP in names else None
    texts = {}
    for name in names:
        kind, what = RESIDUALS[name]
        samples, left = learnt(name, [read_evidence(EVIDENCE / f"{kind}.csv")], catalog, linear)
        law = residuals_of(samples, catalog.spreading.laws[name], catalog.spreading, left)
        source = f"{len(samples)} figures of {kind}.csv, by benchmarks.intervals"
        texts[f"{name}.yaml"] = residual_file(name, what, source, AS_OF, *law)
    write_folder(folder, texts)
    return 0


@cache
def shipped() -> tuple[list[Knob], Linear]:
    """Return the constants that may be fitted, and the rows of training about the shipped ones."""
    priors = Catalog(unfitted=data_root("catalogs"))
    rows = TrainingRows(tuple(rows_of(read_evidence(EVIDENCE / "train_throughput.csv"), priors)))
    knobs = knobs_of(priors, [row.outcome for row in rows.rows])
    (constants,) = Catalog().fitted
    assert constants.name == FITTED
    return knobs, about(rows, knobs, priors, constants)


if __name__ == "__main__":
    sys.exit(main())
