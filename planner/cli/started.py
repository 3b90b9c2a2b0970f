"""What started a run whose log is read: the config of its trainer, and where it ran."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from planner.catalog.load import Catalog
from planner.cli.main import stacked
from planner.errors import InputError

if TYPE_CHECKING:
    from planner.evidence.run_logs import Ran

of_a_log = stacked(
    click.option("--from", "from_", metavar="FILE", help="The trainer's config that started the run, for a log without "
                 "a plan.json beside it."),
    click.option("--node", metavar="NAME", help="Where it ran: a node type, or 4xdgx-h100. Default: dgx-h100."),
    click.option("--gpus", type=click.IntRange(1), metavar="N", help="GPUs in all. Default: those of the node."))
"""Adds the options that say what a log of training is of."""


def started_by(from_: str | None, node: str | None, gpus: int | None, catalog: Catalog, *, as_json: bool = False
               ) -> Ran | None:
    """Return what a config starts, as an estimate of it has it, and say what was read of it; none without one.

    Raises InputError for one that serves, and for a place without a config.
    """
    if from_ is None:
        if node is not None or gpus is not None:
            raise InputError("--node and --gpus say where the config of --from ran, and none is given")
        return None
    from planner.ask.estimate import estimating
    from planner.cli.question import say_read
    from planner.evidence.run_logs import ran
    from planner.scenario.configs.read import read_config

    config = read_config(from_)
    made = estimating(None, {} if gpus is None else {"limits.gpus": gpus}, catalog, node=node, layout={},
                      labels={"limits.gpus": "--gpus", "node": "--node"}, config=config).answer().assignment
    say_read(config, as_json=as_json)
    return ran(made, from_)
