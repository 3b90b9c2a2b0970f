"""The intervals of the shipped catalog, about its constants as they stand.

Run `python -m benchmarks.intervals` at the top of the checkout (about two minutes) after a change of physics, of
constants or of evidence, then `python -m benchmarks.published`. `planner calibrate` does the same after it has fitted
the constants of step time anew.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.releases import About
from benchmarks.releases import Fitted as Releases
from planner.ask.calibrate import MEMORY, RESIDUALS, SERVING, STEP, Refit, learnt, refit_of
from planner.catalog.fitted import FITTED, Fitted
from planner.catalog.load import Catalog, data_root
from planner.evidence.kinds import EvidenceFile
from planner.evidence.reading import read_evidence
from planner.evidence.spread import residuals_of
from planner.fit.knobs import FitConstant, knobs_of
from planner.fit.rows import Rows, TrainingRows, rows_of
from planner.fit.solve import Linearized, changed, slopes_of
from planner.fit.write import residual_file, save

ROOT = Path(__file__).parents[1]
EVIDENCE = ROOT / "tests" / "evidence"
AS_OF = "2026-11"
FILES = {STEP: ("train_throughput", "finetune_throughput"),
         MEMORY: ("train_memory", "train_throughput", "finetune_throughput"),
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


def evidence_of(name: str) -> list[EvidenceFile]:
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


def about(rows: Rows, knobs: Sequence[FitConstant], catalog: Catalog, constants: Fitted) -> Linearized:
    """Return rows about constants that were fitted before.

    catalog: with the priors, as `knobs` have them.
    """
    held = [constants.values.get(knob.place, {}).get(knob.field) for knob in knobs]
    at = np.array([knob.start if one is None else knob.coordinate(one.value)
                   for knob, one in zip(knobs, held, strict=True)])
    free = np.array([one is not None for one in held])
    now = rows.residuals(changed(catalog, knobs, at))
    acts = [rows.acting(knob) if is_free else np.empty(0, np.int64) for knob, is_free in zip(knobs, free, strict=True)]
    jacobian = slopes_of(rows, knobs, catalog, at, now, acts, lambda share: None)
    return Linearized(rows, jacobian, now, at - np.array([knob.start for knob in knobs]),
                  np.array([knob.spread for knob in knobs]), free)


@cache
def shipped() -> tuple[list[FitConstant], Linearized]:
    """Return the constants that may be fitted, and the rows of training about the shipped ones."""
    priors = Catalog(unfitted=data_root("catalogs"))
    rows = TrainingRows(tuple(row for one in evidence_of(STEP) for row in rows_of(one, priors)))
    knobs = knobs_of(priors, [row.outcome for row in rows.rows])
    (constants,) = Catalog().fitted
    assert constants.name == FITTED
    return knobs, about(rows, knobs, priors, constants)


if __name__ == "__main__":
    sys.exit(main())
