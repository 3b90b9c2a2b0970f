"""The serving rows that a fit stands on: what they measured of speed, predicted with an engine's steps changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.catalog.load import Catalog
from planner.errors import PlannerError
from planner.evidence.hardware import machine_gpus
from planner.evidence.kinds import EvidenceFile
from planner.evidence.rows import ServeMeasured, ServeRow, ServeRun
from planner.evidence.serve_run import ServingRow, measured_by, serving_row
from planner.evidence.serve_speed import DeploymentRows, Speed, engine_speed, group_of, predict, quantities, shared
from planner.evidence.skipping import SkippedError
from planner.fit.knobs import FitConstant, release_field
from planner.fit.rows import source_weights
from planner.layouts.table import Floats, Ints

SCALES = {"output_tok_s_per_gpu": 0.10, "tpot_ms": 0.10, "ttft_ms": 0.20}
"""Quantities that are fitted, and the typical residual of each; prompts wait for what clients happen to do."""
RATES = frozenset({"output_tok_s_per_gpu"})
"""Those that are larger the faster an engine is."""


@dataclass(frozen=True, slots=True)
class _Figure:
    """One measured quantity: the row it is of, the group that row is in, and its place there."""

    quantity: str
    row: int
    group: int
    place: int


@dataclass(frozen=True, slots=True)
class ServingRows:
    """Rows of serving speed, with up to three figures each."""

    runs: tuple[tuple[ServeRun, ServeMeasured], ...]
    groups: tuple[DeploymentRows, ...]
    figures: tuple[_Figure, ...]
    row_sources: tuple[str, ...]
    ids: tuple[str, ...]

    @property
    def sources(self) -> Sequence[str]:
        """Of each figure."""
        return [self.row_sources[figure.row] for figure in self.figures]

    @property
    def quantities(self) -> Sequence[str]:
        """What each figure is of."""
        return [figure.quantity for figure in self.figures]

    @property
    def weights(self) -> Floats:
        """Of each figure, by its row's source."""
        return source_weights(self.row_sources)[[figure.row for figure in self.figures]]

    @property
    def scales(self) -> Floats:
        """Of each figure, by what it is of."""
        return np.array([SCALES[figure.quantity] for figure in self.figures])

    def count(self, figures: Ints) -> int:
        """Return how many rows some figures are of."""
        return len({self.figures[int(at)].row for at in figures})

    def acting(self, knob: FitConstant) -> Ints:
        """Return the places of the figures whose prediction a constant can change."""
        release, _, figure = knob.field.rpartition(".")
        mine = {at: group.rows for at, group in enumerate(self.groups)
                if (knob.entry, release) == (group.engine, release_field(group.deployment.engine))}
        return np.array([at for at, held in enumerate(self.figures)
                         if held.group in mine and _acts(figure, mine[held.group][held.place])], np.int64)

    def residuals(self, catalog: Catalog, places: Ints | None = None) -> Floats:
        """Return the logarithm of predicted over measured time of every figure, or of some; of rates inverted."""
        some = self.figures if places is None else [self.figures[int(at)] for at in places]
        speeds = {at: predict(_under(self.groups[at], catalog)) for at in sorted({figure.group for figure in some})}
        return np.array([_residual(*self.runs[figure.row], speeds[figure.group][figure.place], figure.quantity)
                         for figure in some])


def serving_rows(files: Sequence[EvidenceFile], catalog: Catalog) -> ServingRows:
    """Return the rows that decide: none of the rate within a level, whose limits are recalled, and none suspect."""
    runs: list[tuple[ServeRun, ServeMeasured]] = []
    rows: dict[int, ServingRow] = {}
    sources: list[str] = []
    ids: list[str] = []
    for row in (row for file in files for row in file.rows if not row.suspect):
        assert isinstance(row, ServeRow)
        try:
            fitted_row = serving_row(row.run, catalog)
        except (SkippedError, PlannerError):
            continue
        if fitted_row.regime != "server" and not fitted_row.experimental:
            rows[len(runs)] = fitted_row
            runs.append((row.run, row.measured))
            sources.append(measured_by(row, catalog.sources))
            ids.append(row.id)
    groups: list[DeploymentRows] = []
    figures: list[_Figure] = []
    for members in shared(rows, machine_gpus(catalog)):
        try:
            group = group_of(members, rows, catalog)
            speeds = predict(group)
        except (SkippedError, PlannerError):
            continue
        figures += [_Figure(name, member, len(groups), place)
                    for place, (member, speed) in enumerate(zip(group.at, speeds, strict=True))
                    for name in _fitted(*runs[member], speed)]
        groups.append(group)
    used = sorted({figure.row for figure in figures})
    number = {row: at for at, row in enumerate(used)}
    return ServingRows(tuple(runs[row] for row in used), tuple(groups),
                       tuple(replace(figure, row=number[figure.row]) for figure in figures),
                       tuple(sources[row] for row in used), tuple(ids[row] for row in used))


def _fitted(run: ServeRun, measured: ServeMeasured, speed: Speed) -> list[str]:
    """Return the quantities of a row that are fitted: what handing over takes is no figure of a release."""
    return [name for name, predicted, held in quantities(run, measured, speed)
            if name in SCALES and predicted > 0 and held > 0 and not (speed.row.decode and name == "ttft_ms")]


def _residual(run: ServeRun, measured: ServeMeasured, speed: Speed, quantity: str) -> float:
    predicted, held = next((predicted, held) for name, predicted, held in quantities(run, measured, speed)
                           if name == quantity)
    ratio = float(np.log(predicted / held))
    return -ratio if quantity in RATES else ratio


def _under(group: DeploymentRows, catalog: Catalog) -> DeploymentRows:
    """Return a group whose engine runs its steps as `catalog` says."""
    d, row = group.deployment, group.rows[0]
    speed = engine_speed(row, d.candidates[0].gpu, catalog)
    return replace(group, deployment=replace(d, engine=speed))


def _acts(figure: str, row: ServingRow) -> bool:
    """Say whether a figure of its release can change the prediction of a row."""
    match figure:
        case "experts" | "mixture":
            return row.model.mixes_experts
        case "exchange":
            return row.tp != 1 or row.pp > 1
        case "burst":
            return row.regime == "closed"
    return True
