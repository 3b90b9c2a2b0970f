"""What `planner compare` and `planner plan` say of hardware without work: rent or buy."""

from __future__ import annotations

from collections.abc import Mapping

from planner.catalog.load import Catalog
from planner.cli.options import is_verbose, say_answer, warn
from planner.cli.question import LABELS
from planner.errors import EXIT_INFEASIBLE, EXIT_OK
from planner.scenario.hardware_alone import load_hardware


def say_rent_or_buy(values: Mapping[str, object], catalog: Catalog, *, as_json: bool) -> int:
    """Print the answer to a question of hardware alone, given by path, and return the exit code."""
    from planner.ask.rent_or_buy import rent_or_buy
    from planner.render.rent_or_buy import render_rent_or_buy, rent_or_buy_line

    question, _ = load_hardware(values, catalog, LABELS)
    found = rent_or_buy(question, catalog)
    warn(way.row.note for way in found.ways if way.row.note)
    say_answer(found.comparison, lambda: rent_or_buy_line(found),
               lambda page: render_rent_or_buy(found, page, full=is_verbose()), as_json=as_json)
    return EXIT_OK if found.ways[0].row.cost_usd is not None else EXIT_INFEASIBLE
