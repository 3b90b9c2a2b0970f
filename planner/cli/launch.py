"""`planner launch`: files that start a plan (not yet available)."""

from __future__ import annotations

import click

from planner.errors import InputError


@click.command("launch", context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(arguments: tuple[str, ...]) -> int:
    """Write the files that start a plan (not yet available)."""
    raise InputError("launch is not yet available")
