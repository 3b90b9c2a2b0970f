"""What an answer rests on: the resolved question, the defaults that decided, catalog and versions."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata

from planner.answer.schema import Measure, Provenance
from planner.catalog.load import Catalog
from planner.scenario.default import Default
from planner.scenario.portfolio import AnyQuestion
from planner.version import __version__


def provenance_of(scenario: AnyQuestion, catalog: Catalog, defaults: Sequence[Default], *,
                  simple: bool = False, pareto: tuple[Measure, ...] | None = None) -> Provenance:
    """Return what the answer rests on: the resolved question, defaults, catalog and versions.

    simple: the plan is another than the optimum, the simplest of those tied with it.
    """
    return Provenance(scenario=scenario.model_dump(mode="json", exclude_none=True, by_alias=True),
                      defaults=tuple(defaults), catalog_digest=catalog.digest, versions=_versions(),
                      prefer="simple" if simple else None, pareto=pareto)


def _versions() -> dict[str, str]:
    return {"planner": __version__, **{name: metadata.version(name) for name in ("ortools", "numpy", "networkx")}}
