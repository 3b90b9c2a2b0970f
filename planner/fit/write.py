"""The files of a fit: constants that lie over the catalog, and quantiles of what they leave."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from planner.catalog.fitted import FITTED, fitted_files, read_fitted, text_digest
from planner.catalog.nearness import Cell
from planner.catalog.residuals import Law, Quantiles, Residuals
from planner.errors import InputError, IOFailure
from planner.fit.solve import Fit
from planner.text_io import write_folder
from planner.yaml_io import dump, parse, validate

DIGITS = 4
"""Significant digits of a fitted figure: more than any of them is known to."""


def constants(fits: Sequence[Fit]) -> dict[str, dict[str, tuple[float, float, int]]]:
    """Return the decided constants by entry and field: figure, spread of its coordinate, rows."""
    values: dict[str, dict[str, tuple[float, float, int]]] = {}
    every = (part for fit in fits for part in zip(fit.knobs, fit.coordinates, fit.spreads, fit.decided, fit.acting,
                                                  strict=True))
    for knob, at, spread, decided, rows in every:
        if decided:
            value = float(f"{knob.value(float(at)):.{DIGITS}g}")
            values.setdefault(knob.place, {})[knob.field] = (value, round(float(spread), 3), rows)
    return values


def fitted_file(fits: Sequence[Fit], source: str, as_of: str, note: str) -> str:
    """Return the text of fitted.yaml."""
    lines = []
    for place, fields in sorted(constants(fits).items()):
        lines.append(f"  {place}:")
        lines += [f"    {field}: {{value: {value}, spread: {spread}, rows: {rows}}}"
                  for field, (value, spread, rows) in sorted(fields.items())]
    head = {"name": FITTED, "source": source, "as_of": as_of, "kind": "fitted", "note": note}
    return dump(head) + ("values:\n" + "\n".join(lines) if lines else "values: {}") + "\n"


def residual_file(name: str, what: str, source: str, as_of: str, law: Law, quantiles: Quantiles,
                  cells: Sequence[Cell], held_out: float | None) -> str:
    """Return the text of a file of residuals, the cells most alike first, each on a line."""
    head = {"name": name, "source": f"measured over predicted {what} of {source}", "as_of": as_of, "kind": "fitted",
            "law": law.model_dump(mode="json"), "quantiles": quantiles.model_dump(mode="json"),
            **({} if held_out is None else {"held_out": held_out})}
    lines = [f"  - {json.dumps(cell.model_dump(mode='json', exclude_defaults=True))}" for cell in cells]
    return dump(head) + "cells:\n" + "\n".join(lines) + "\n"


def save(folder: Path, fitted: str, residuals: Mapping[str, str]) -> list[Path]:
    """Write the texts of a fit into the folder's calibration and return their paths. Raises InputError, IOFailure.

    The constants name the digests of their residuals and come first, so that a write cut short is seen when read.
    Residuals of another fit that are there keep theirs.
    """
    for name, text in residuals.items():
        validate(parse(text, name), Residuals)
    digests: dict[str, str] = {}
    # a fit that was cut short is replaced
    with suppress(InputError, IOFailure):
        for file in fitted_files([folder], None):
            digests |= read_fitted(file).residuals
    digests |= {name: text_digest(text) for name, text in residuals.items()}
    ties = dump({"residuals": digests}) if digests else ""
    return write_folder(folder / "calibration", {
        f"{FITTED}.yaml": fitted + ties, **{f"{name}.yaml": text for name, text in residuals.items()}})
