"""The intervals of the shipped catalog, about its constants as they stand.

Run `python -m benchmarks.intervals` at the top of the checkout (about two minutes) after a change of physics, of
constants or of evidence. `planner calibrate` does the same after it has fitted the constants of step time anew.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

from benchmarks.releases import About
from benchmarks.releases import Fitted as Releases
from planner.ask.calibrate import MEMORY, RESIDUALS, SERVING, STEP, Refit, learnt, refit_of
from planner.catalog.fitted import FITTED
from planner.catalog.load import Catalog, data_root
from planner.evidence.kinds import Evidence
from planner.evidence.reading import read_evidence
from planner.evidence.spread import residuals_of
from planner.fit.knobs import Knob, knobs_of
from planner.fit.rows import TrainingRows, rows_of
from planner.fit.solve import Linear, about
from planner.fit.write import residual_file, save

ROOT = Path(__file__).parents[1]
EVIDENCE = ROOT / "tests" / "evidence"
AS_OF = "2026-11"
FILES = {STEP: ("train_throughput", "finetune_throughput"), MEMORY: ("train_memory",),
         **dict.fromkeys(SERVING, ("serve_throughput",))}
"""Evidence that each file of residuals stands on."""


def main() -> int:
    """Write the files of residuals."""
    folder = ROOT / "catalogs"
    texts = {name: (folder / "calibration" / f"{name}.yaml").read_text(encoding="utf-8") for name in FILES}
    constants = (folder / "calibration" / f"{FITTED}.yaml").read_text(encoding="utf-8").split("\nresiduals:")[0] + "\n"
    save(folder, constants, texts)  # so that the catalog is of one piece whoever wrote its parts
    catalog = Catalog()
    names = [name for name in FILES if not sys.argv[1:] or name in sys.argv[1:]]
    for name in names:
        samples, left = learnt(name, evidence_of(name), catalog, refitted(name))
        law = residuals_of(samples, catalog.spreading.laws[name], catalog.spreading, left)
        source = f"{len(samples)} figures of {', '.join(FILES[name])}, by benchmarks.intervals"
        texts[name] = residual_file(name, RESIDUALS[name][1], source, AS_OF, *law)
    save(folder, constants, texts)
    return 0


def evidence_of(name: str) -> list[Evidence]:
    """Return the files that residuals stand on."""
    return [read_evidence(EVIDENCE / f"{one}.csv") for one in FILES[name]]


def refitted(name: str) -> Refit | None:
    """Return the rows of a file of residuals about the shipped constants; none of memory, which no fit decides."""
    return refit_of(shipped()[1]) if name == STEP else about_releases().refit() if name in SERVING else None


@cache
def about_releases() -> About:
    """Return the rows of serving about the shipped releases of engines."""
    rows = Releases.of(Catalog())
    return About.of(rows, rows.start)


@cache
def shipped() -> tuple[list[Knob], Linear]:
    """Return the constants that may be fitted, and the rows of training about the shipped ones."""
    priors = Catalog(unfitted=data_root("catalogs"))
    rows = TrainingRows(tuple(row for one in evidence_of(STEP) for row in rows_of(one, priors)))
    knobs = knobs_of(priors, [row.outcome for row in rows.rows])
    (constants,) = Catalog().fitted
    assert constants.name == FITTED
    return knobs, about(rows, knobs, priors, constants)


if __name__ == "__main__":
    sys.exit(main())
