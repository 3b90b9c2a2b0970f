"""Fits the releases of engines to published speed, all together, and writes `catalogs/speeds`: run
`python -m benchmarks.releases [rounds]`; it starts from the catalog as it stands, and takes a minute a round.

The logarithm of each constant of a release on an architecture has a normal prior. Its covariance falls off with the
time between releases and with how unlike engines and architectures are (a Gaussian process), so that a release or an
architecture without rows takes the mean that the others leave it. Some constants of the law are fitted beside them.
Residuals are Student-t about an offset that the runs of one setup have in common: many of them tell how a release
varies with its load, and no more than one of them how fast it is.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from benchmarks.engines import ARCHITECTURES, LAW, RELEASES, TYPICAL, Place, least, matrix, order, place_of, typical
from planner.ask.calibrate import Refit
from planner.catalog.load import Catalog
from planner.catalog.speed import EngineSpeed, ServingLaw
from planner.evidence.reading import read_evidence
from planner.evidence.serve_speed import Speed, as_it_ran, predict, quantities
from planner.fit.serving_rows import RATES, ServingRows, serving_rows
from planner.layouts.table import Floats, Ints

EVIDENCE, SPEEDS = Path("tests/evidence/serve_throughput.csv"), Path("catalogs/speeds")
SERVING = Path("catalogs/calibration/serving.yaml")
FREEDOM, STEP, TRUST, FAR = 4.0, .03, .8, .2
"""Of Student-t residuals; step of a slope; most that a round of a fit moves a constant's logarithm; from where on what
is left out of a fit is predicted anew, as slopes no longer tell.
"""
SCALES = {"output_tok_s_per_gpu": .12, "tpot_ms": .1, "ttft_ms": .25}
OFFSETS = {"output_tok_s_per_gpu": .12, "tpot_ms": .15, "ttft_ms": .3}
"""Standard deviations of what is left of a figure, and of what those of one setup have in common: the latter between
those of the medians of 617 setups, robustly, fitted (.08, .11, .22) and with their source left out (.16, .2, .36).
"""


def main() -> None:
    """Fit, print errors, and write the files."""
    rows = Fitted.of(Catalog())
    at = rows.start
    for number in range(int(sys.argv[1]) if len(sys.argv) > 1 else 3):
        at = np.maximum(at + About.of(rows, at).move(), rows.least)
        print(number + 1, rows.errors(rows.residuals(at)), flush=True)
    for engine in RELEASES:
        _write(engine, rows, rows.each(at))
    _write_law(rows.law(at))


@dataclass(frozen=True)
class Fitted:
    """Rows of serving speed by the release that they ran, and the constants that decide them: a row of coordinates
    for each place, one after the other, then those of LAW.
    """

    catalog: Catalog
    rows: ServingRows
    places: tuple[Place, ...]
    of_group: tuple[int, ...]
    """Place of each group; below zero of engines that are not fitted here."""

    @classmethod
    def of(cls, catalog: Catalog) -> Fitted:
        """Read the rows."""
        rows = serving_rows([read_evidence(EVIDENCE)], catalog)
        each = [place_of(group) for group in rows.groups]
        places = tuple(sorted({place for place in each if place}))
        return cls(catalog, rows, places, tuple(places.index(place) if place else -1 for place in each))

    @cached_property
    def figures(self) -> Ints:
        """Places of the figures that are fitted among all."""
        return np.array([at for at, held in enumerate(self.rows.figures) if self.of_group[held.group] >= 0], np.int64)

    @cached_property
    def setups(self) -> Sequence[tuple[object, ...]]:
        """Of each fitted figure, what it has an offset in common with."""
        found: list[tuple[object, ...]] = []
        for held in (self.rows.figures[at] for at in self.figures.tolist()):
            row, run = self.rows.groups[held.group].rows[held.place], self.rows.runs[held.row][0]
            found.append((held.quantity, run.source, (run.source_detail or "").split("/")[0].split(" (")[0], row.engine,
                          row.version, row.gpu, row.model.name, row.format, row.tp, row.pp, row.ep, row.dp,
                          row.decode is None, row.drafts, row.regime))
        return found

    @property
    def start(self) -> Floats:
        """The constants of the catalog."""
        releases = [self.catalog.speeds(engine).release(version, ARCHITECTURES[name][0])
                    for engine, version, name in self.places]
        law = self.catalog.serving_law
        found: Floats = np.log([*(getattr(one, name) for one in releases for name in TYPICAL),
                                *(_of(law, name) for name in LAW)])
        return found

    @property
    def least(self) -> Floats:
        """Least coordinates."""
        return np.append(least(self.places), np.full(len(LAW), -np.inf))

    def each(self, at: Floats) -> Floats:
        """Return the coordinates of the releases, one row a place."""
        return at[:-len(LAW)].reshape(len(self.places), len(TYPICAL))

    def law(self, at: Floats) -> ServingLaw:
        """Return the law at some coordinates."""
        changed = self.catalog.serving_law.model_dump()
        for name, value in zip(LAW, np.exp(at[-len(LAW):]).tolist(), strict=True):
            key, _, inner = name.partition(".")
            changed[key] = {**changed[key], inner: value} if inner else value
        return ServingLaw.model_validate(changed)

    def residuals(self, at: Floats, some: Ints | None = None) -> Floats:
        """Return the logarithm of predicted over measured time of the fitted figures, or of some of them."""
        each, law, speeds = np.exp(self.each(at)), self.law(at), dict[int, list[Speed]]()
        figures = [self.rows.figures[f] for f in self.figures[slice(None) if some is None else some].tolist()]
        asked = {figure.group for figure in figures}
        for number, (group, place) in enumerate(zip(self.rows.groups, self.of_group, strict=True)):
            if number in asked:
                usual, d = _speed(self.catalog, self.places[place], each[place]), group.deployment
                engine = as_it_ran(usual, group.rows[0], d.candidates[0].gpu, self.catalog)
                speeds[number] = predict(replace(group, deployment=replace(d, engine=engine, law=law)))
        found = []
        for figure in figures:
            run, measured = self.rows.runs[figure.row]
            said = quantities(run, measured, speeds[figure.group][figure.place])
            predicted, real = next((p, m) for name, p, m in said if name == figure.quantity)
            log = np.log(max(predicted, 1e-9) / real)
            found.append(np.clip(-log if figure.quantity in RATES else log, -4, 4))
        return np.array(found)

    def design(self, at: Floats, now: Floats) -> Floats:
        """Return the change of every residual with every coordinate."""
        many, constants = len(self.places), len(TYPICAL)
        mine = np.array([self.of_group[self.rows.figures[f].group] for f in self.figures.tolist()]) * constants
        found = np.zeros((len(now), len(at)))
        for number in range(constants):
            # places do not touch each other's figures
            moved = at + STEP * (np.arange(len(at)) % constants == number) * (np.arange(len(at)) < many * constants)
            found[np.arange(len(now)), mine + number] = (self.residuals(moved) - now) / STEP
        for number in range(many * constants, len(at)):
            found[:, number] = (self.residuals(at + STEP * (np.arange(len(at)) == number)) - now) / STEP
        return found

    def errors(self, residuals: Floats) -> dict[str, str]:
        """Return median and 90th percentile of the relative error of each quantity."""
        names = [self.rows.figures[f].quantity for f in self.figures.tolist()]
        logs = {name: residuals[np.array([one == name for one in names])] * (-1 if name in RATES else 1)
                for name in SCALES}
        return {name: "{:.1%} / {:.1%}".format(*np.quantile(np.abs(np.expm1(held)), (.5, .9)))
                for name, held in logs.items() if len(held)}


@dataclass(frozen=True)
class About:
    """Rows about some constants, by which these are solved again without some of them."""

    rows: Fitted
    at: Floats
    now: Floats
    design: Floats
    weights: Floats
    curve: Floats
    slope: Floats

    @classmethod
    def of(cls, rows: Fitted, at: Floats) -> About:
        """Return rows about some constants; takes a minute."""
        now = rows.residuals(at)
        figures = [rows.rows.figures[f] for f in rows.figures.tolist()]
        scale = np.array([SCALES[figure.quantity] for figure in figures])
        crowd = [(rows.rows.row_sources[figure.row], rows.of_group[figure.group]) for figure in figures]
        many = {one: crowd.count(one) for one in set(crowd)}
        weights = (FREEDOM + 1) / (FREEDOM + (now / scale)**2) / scale**2 / np.array([many[one] for one in crowd])**.25
        curve, slope = _prior(rows, at)
        found = cls(rows, at, now, rows.design(at, now), weights, curve, slope)
        more = found.held(np.arange(len(now)))
        return replace(found, curve=curve + more[0], slope=slope + more[1])

    @cached_property
    def known(self) -> dict[bytes, tuple[Floats, Floats, Floats, Floats]]:
        """Of some figures that are left out: curvature and slope that are left, the step, the logarithms under it."""
        return {}

    def left_out(self) -> Iterator[tuple[str, str, str, str, str]]:
        """Yield what is left out together, the quantity, rows, median and 90th percentile of the error."""
        held = [self.rows.rows.figures[f] for f in self.rows.figures.tolist()]
        sources = [self.rows.rows.row_sources[figure.row] for figure in held]
        rows = [self.rows.rows.groups[figure.group].rows[figure.place] for figure in held]
        for what, keys in (
                ("a source", sources),
                ("a version on a GPU of a source", [f"{source} {row.engine} {row.version} {row.gpu}"
                                                    for source, row in zip(sources, rows, strict=True)]),
                ("a model on a GPU of a source", [f"{source} {row.model.name} {row.gpu}"
                                                  for source, row in zip(sources, rows, strict=True)])):
            left = self.without(keys)
            for name in SCALES:
                mine = np.flatnonzero([figure.quantity == name for figure in held])
                log = left[mine] * (-1 if name in RATES else 1)
                median, most = np.quantile(np.abs(np.expm1(log)), (.5, .9))
                yield what, name, str(len(mine)), f"{median:.1%}", f"{most:.1%}"

    def without(self, keys: Sequence[str]) -> Floats:
        """Return the logarithms of predicted over measured time of all figures, those of its key left out of each."""
        left = self.now.copy()
        for key in sorted(set(keys)):
            mine = np.flatnonzero([key == one for one in keys])
            left[mine] = self.under(self.move(mine, trust=np.inf), mine)
        return left

    def under(self, move: Floats, figures: Ints, known: tuple[Floats, Floats] | None = None) -> Floats:
        """Return the logarithms of some figures under constants that are moved: by their slopes, but of those of a
        release that moves far, which are predicted anew.

        known: another move, and all logarithms under it, from where the slopes go on.
        """
        before, logs = known or (np.zeros(len(move)), self.now)
        left: Floats = logs[figures] + self.design[figures] @ (move - before)
        releases = np.flatnonzero(np.max(np.abs(self.rows.each(move - before)), axis=1) >= FAR)
        far = np.flatnonzero(np.isin(self.parts[0][figures], releases))
        if len(far):
            left[far] = self.rows.residuals(np.maximum(self.at + move, self.rows.least), figures[far])
        return left

    @cached_property
    def parts(self) -> tuple[Ints, Ints, Floats]:
        """Return place and setup of every figure, and the weight of each setup's offset."""
        figures = [self.rows.rows.figures[f] for f in self.rows.figures.tolist()]
        number = {setup: at for at, setup in enumerate(dict.fromkeys(self.rows.setups))}
        return (np.array([self.rows.of_group[figure.group] for figure in figures], np.int64),
                np.array([number[setup] for setup in self.rows.setups], np.int64),
                np.array([1 / OFFSETS[str(quantity)]**2 for quantity, *_ in number]))

    def held(self, figures: Ints) -> tuple[Floats, Floats]:
        """Return curvature and slope that some figures, whole setups, add: each setup's offset is solved for first.

        Figures of a place know no constants but its own and those of the law; no setup is of two places.
        """
        places, setups, offsets = self.parts
        many, constants = len(self.rows.places) * len(TYPICAL), len(TYPICAL)
        curve, slope = np.zeros((len(self.at), len(self.at))), np.zeros(len(self.at))
        for place in np.unique(places[figures]).tolist():
            mine = figures[places[figures] == place]
            columns = np.r_[place * constants:(place + 1) * constants, many:len(self.at)]
            design, weights, now = self.design[np.ix_(mine, columns)], self.weights[mine], self.now[mine]
            names, of = np.unique(setups[mine], return_inverse=True)
            common = np.zeros((len(names), len(columns)))
            np.add.at(common, of, design * weights[:, None])
            whole = np.bincount(of, weights) + offsets[names]
            curve[np.ix_(columns, columns)] += (design.T @ (design * weights[:, None])
                                                - common.T @ (common / whole[:, None]))
            slope[columns] += design.T @ (weights * now) - common.T @ (np.bincount(of, weights * now) / whole)
        return curve, slope

    def move(self, without: Ints | None = None, trust: float = TRUST) -> Floats:
        """Return the step to the best constants, or to those without some figures, of `trust` at most."""
        curve, slope = (0.0, 0.0) if without is None else self.held(without)
        return np.clip(-np.linalg.solve(self.curve - curve, self.slope - slope), -trust, trust)

    def refit(self) -> Refit:
        """Return logarithms of measured over predicted of figures, by row and quantity, without their rows."""
        held = [self.rows.rows.figures[f] for f in self.rows.figures.tolist()]
        sign = np.array([1.0 if figure.quantity in RATES else -1.0 for figure in held])
        of_row = np.array([figure.row for figure in held])

        def without(places: Ints, beside: Ints) -> Floats:
            gone = np.isin(of_row, of_row[beside])
            others, mine = np.flatnonzero(gone), np.flatnonzero(np.isin(of_row, of_row[places]) & ~gone)
            key = others.tobytes()
            if key not in self.known:
                added = self.held(others)
                move = self.move(others, trust=np.inf) if len(others) else np.zeros(len(self.at))
                self.known[key] = (self.curve - added[0], self.slope - added[1], move,
                                   self.under(move, np.arange(len(held))))
            curve, slope, before, logs = self.known[key]
            # of setups that stay in part the offset is counted whole: less is left of the rest than there is
            more = self.held(mine)
            step = np.asarray(-np.linalg.solve(curve - more[0], slope - more[1]), np.float64)
            found: Floats = sign[places] * self.under(step, places, (before, logs))
            return found

        return Refit({f"{self.rows.rows.ids[figure.row]} {figure.quantity}": place
                      for place, figure in enumerate(held)}, without)


def _prior(rows: Fitted, at: Floats) -> tuple[Floats, Floats]:
    """Return curvature and slope of the prior."""
    constants, many = len(TYPICAL), len(rows.places)
    curve, slope = np.zeros((len(at), len(at))), np.zeros(len(at))
    for number, (name, (_, spread)) in enumerate(TYPICAL.items()):
        mine = np.arange(many) * constants + number
        inverse = np.linalg.inv(matrix(name, rows.places, rows.places) + 1e-6 * spread**2 * np.eye(many))
        curve[np.ix_(mine, mine)] = inverse
        slope[mine] = inverse @ (at[mine] - typical(name, rows.places))
    for number, (median, spread) in enumerate(LAW.values(), many * constants):
        curve[number, number], slope[number] = 1 / spread**2, (at[number] - np.log(median)) / spread**2
    return curve, slope


def _of(law: ServingLaw, name: str) -> float:
    key, _, inner = name.partition(".")
    found = getattr(law, key)
    return float(found[inner] if inner else found)


def _speed(catalog: Catalog, place: Place, values: Floats) -> EngineSpeed:
    """Return a release of the catalog, which says how it schedules, with other times."""
    engine, version, architecture = place
    usual = catalog.speeds(engine).release(version, architecture)
    return usual.model_copy(update=dict(zip(TYPICAL, values.tolist(), strict=True)))


def _write(engine: str, rows: Fitted, at: Floats) -> None:
    """Write an engine's file: its releases by every architecture that it has entries for."""
    path = SPEEDS / f"{engine}.yaml"
    head = path.read_text(encoding="utf-8").split("releases:\n")[0]
    have = {name for one in rows.catalog.speeds(engine).releases for name in one.architectures} | {"hopper"}
    places = tuple((engine, version, name) for version in RELEASES[engine] for name in ARCHITECTURES if name in have)
    means = np.empty((len(places), len(TYPICAL)))
    for number, (name, (_, spread)) in enumerate(TYPICAL.items()):
        held = matrix(name, rows.places, rows.places) + 1e-6 * spread**2 * np.eye(len(rows.places))
        over = np.linalg.solve(held, at[:, number] - typical(name, rows.places))
        means[:, number] = typical(name, places) + matrix(name, places, rows.places) @ over
    means = np.exp(np.maximum(means, least(places).reshape(means.shape)))
    ranked = sorted(range(len(places)), key=lambda n: (order(places[n][1]), () if places[n][2] == "hopper"
                                                      else ARCHITECTURES[places[n][2]]))
    entries = [_entry(rows, places[n], dict(zip(TYPICAL, means[n].tolist(), strict=True))) for n in ranked]
    path.write_text(head + "releases:\n" + "\n".join(entries) + "\n", encoding="utf-8", newline="\n")


def _write_law(law: ServingLaw) -> None:
    """Write the fitted constants into the file of the law."""
    text = SERVING.read_text(encoding="utf-8")
    for key in dict.fromkeys(name.partition(".")[0] for name in LAW):
        names = [name for name in LAW if name.partition(".")[0] == key]
        value = (f"{_of(law, key):.3g}" if names == [key] else
                 "{" + ", ".join(f"{name.partition('.')[2]}: {_of(law, name):.3g}" for name in names) + "}")
        text = re.sub(rf"(?m)^{key}: .*$", f"{key}: {value}", text)
    SERVING.write_text(text, encoding="utf-8", newline="\n")


def _entry(rows: Fitted, place: Place, values: Mapping[str, float]) -> str:
    """Return the YAML of a release: fitted times, and scheduling as the catalog has it."""
    _, version, architecture = place
    kept = _speed(rows.catalog, place, np.array(list(values.values())))
    count = 0
    if place in rows.places:
        mine = rows.places.index(place)
        count = len({held.row for held in rows.rows.figures if rows.of_group[held.group] == mine})
    parts = [f'version: "{version}"']
    parts += [f"architectures: [{', '.join(ARCHITECTURES[architecture])}]"] if architecture != "hopper" else []
    for name, value in values.items():
        parts.append(f"{name}: " + (f"{float(f'{1e6 * value:.3g}'):g} us" if TYPICAL[name][0] < .05
                                    else f"{float(f'{value:.3g}'):g}"))
    parts += ["stream: 1", f"chunk: {kept.chunk}", f"sequences: {kept.sequences}"]
    parts += [f"grouped: {kept.grouped}"] if kept.grouped else []
    usual = EngineSpeed.model_fields["expanded_rows"].default
    parts += [f"expanded_rows: {kept.expanded_rows}"] if kept.expanded_rows != usual else []
    parts += ["prefill_first: true"] if kept.prefill_first else []
    joined = [re.sub(" ", "\x00", part) for part in parts]
    text = textwrap.fill(", ".join(joined), 112, break_long_words=False, break_on_hyphens=False).replace("\x00", " ")
    said = f"{count} row{'s' if count > 1 else ''}" if count else "no rows: what others say of it"
    return f"  # {said}\n  - {{" + text.replace("\n", "\n     ") + "}"


if __name__ == "__main__":
    main()
