"""`planner catalog list | show | check | import`: what exists, and where each fact comes from."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import click

from planner.catalog import checking
from planner.catalog.architecture import Model
from planner.catalog.figures import figures
from planner.catalog.hardware import Node
from planner.catalog.load import Catalog
from planner.catalog.sourced import Kind, Sourced
from planner.cli.facts import ALL_KINDS, entries, find, key_facts
from planner.cli.import_prices import import_gpuhunt, import_skypilot
from planner.cli.main import everywhere
from planner.cli.options import common, console, is_quiet, is_verbose, open_catalog
from planner.cli.printing import note, say, say_json, say_yaml
from planner.errors import EXIT_OK, InputError
from planner.money.rent import usual_candidate
from planner.physics.shapes import active_parameters, parameters
from planner.render.page import Column, Page
from planner.render.topology import topology_lines
from planner.render.topology_svg import topology_svg
from planner.text_io import json_text, write_folder, write_text
from planner.yaml_io import dump


@click.group("catalog", no_args_is_help=True)
@everywhere
def command() -> None:
    """Show what exists, and where each fact comes from."""


@command.command("list")
@click.argument("kind", required=False, type=click.Choice(ALL_KINDS, case_sensitive=False), metavar="[KIND]")
@common
def list_entries(kind: str | None, as_json: bool, catalogs: tuple[Path, ...]) -> int:
    """List the entries of one KIND, or of all: gpus, nodes, fabrics, models, prices, stacks, calibration."""
    catalog = open_catalog(catalogs)
    found = {k: entries(catalog, k) for k in ([kind] if kind else ALL_KINDS)}
    if as_json:
        _print_json({"schema": "planner.catalog-list/1"} | {
            k: [{"name": e.name, "facts": key_facts(e), "kind": e.kind, "as_of": e.as_of, "source": e.source}
                for e in listed] for k, listed in found.items()})
        return EXIT_OK
    page = Page(console())
    for k, listed in found.items():
        page.heading(f"{k} ({len(listed)})")
        page.table([Column("name"), Column("facts"), Column("kind"), Column("as of")],
                   [[e.name, key_facts(e), e.kind, e.as_of] for e in listed])
    return EXIT_OK


@command.command("show")
@click.argument("name")
@click.option("--svg", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Also draw the topology of a node into FILE.")
@common
def show(name: str, svg: Path | None, as_json: bool, catalogs: tuple[Path, ...]) -> int:
    """Show one entry of any kind: every figure with its unit, source, date and kind.

    NAME is a name, alias or Hugging Face id, or KIND/NAME.
    """
    catalog = open_catalog(catalogs)
    kind, entry = find(catalog, name)
    if svg is not None:
        _draw(entry, kind, catalog, svg)
    counts = _counts(entry)
    if as_json:
        provenance = {figure.path: figure.fact.model_dump(mode="json") for figure in figures(entry)}
        _print_json({"schema": "planner.catalog-entry/1", "entry": kind, **entry.model_dump(mode="json"),
                     **counts, "provenance": provenance})
        return EXIT_OK
    # whatever may not resolve is looked up before the first line is printed
    topology = topology_lines(usual_candidate(entry, catalog)) if isinstance(entry, Node) else []
    page = Page(console())
    page.paragraph(f"{entry.name} ({kind}): {key_facts(entry)}", "bold")
    page.facts([("aliases", ", ".join(entry.aliases) or "none"), ("source", entry.source),
                ("as of", entry.as_of), ("kind", entry.kind), *([("note", entry.note)] if entry.note else []),
                *((label.replace("_", " "), f"{count:,}") for label, count in counts.items())])
    page.table([Column("figure"), Column("value"), Column("kind"), Column("as of"), Column("source")],
               [[f.path, f.value, f.fact.kind, f.fact.as_of, _source(f.fact.source, entry)]
                for f in figures(entry)])
    if topology:
        page.heading("topology")
        for line in topology:
            page.paragraph("  " + line)
    return EXIT_OK


def _draw(entry: Sourced, kind: str, catalog: Catalog, path: Path) -> None:
    if not isinstance(entry, Node):
        raise InputError(f"--svg draws the topology of a node; {entry.name} is of {kind}")
    write_text(path, topology_svg(usual_candidate(entry, catalog)))


def _source(source: str, entry: Sourced) -> str:
    return "as above" if source == entry.source else source


def _counts(entry: Sourced) -> dict[str, int]:
    """Return the exact parameter counts of a model: all of them, and those that one token uses."""
    if not isinstance(entry, Model):
        return {}
    return {"parameters": parameters(entry), "active_parameters": active_parameters(entry)}


@command.command("check")
@common
def check(as_json: bool, catalogs: tuple[Path, ...]) -> int:
    """Read everything, resolve every name, and count the figures by how sure they are.

    Ends with the first error (exit code 2). With -v the assumed figures are listed.
    """
    catalog = open_catalog(catalogs)
    read = list(checking.check(catalog))
    facts = [(entry.name, figure) for entry in read for figure in figures(entry)]
    counts = Counter(figure.fact.kind for _, figure in facts)
    assumed = [(f"{name}: {figure.path}", figure.value) for name, figure in facts
               if figure.fact.kind == "assumed"]
    if as_json:
        _print_json({"schema": "planner.catalog-check/1", "entries": len(read), "digest": catalog.digest,
                     "figures": {kind: counts[kind] for kind in get_args(Kind)},
                     "assumed": [figure for figure, _ in assumed]})
        return EXIT_OK
    page = Page(console())
    page.paragraph(f"{len(read)} entries, {len(facts):,} figures, all names resolve", "bold")
    page.paragraph(f"digest {catalog.digest}")
    if not is_quiet():
        page.facts([(kind, f"{counts[kind]:,}") for kind in get_args(Kind)])
    if is_verbose():
        page.heading("assumed")
        page.facts(assumed)
    return EXIT_OK


@command.group("import", no_args_is_help=True)
@everywhere
def import_entries() -> None:
    """Turn other people's files into catalog entries."""


@import_entries.command("hf")
@click.argument("config", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="DIR",
              help="Catalog folder to write models/NAME.yaml into, for --catalogs. Default: print the entry.")
@click.option("--text-only", is_flag=True, help="Of a vision-language model, the language model alone.")
@click.option("--name", metavar="NAME", help="What to call it. Default: what config, file or folder are called.")
@common
def import_hf(config: Path, output: Path | None, text_only: bool, name: str | None, as_json: bool,
              catalogs: tuple[Path, ...]) -> int:
    """Read a model's config.json; a safetensors index beside it must agree with the count."""
    from planner.catalog.importers.hf import checkpoint_total, import_config

    model = import_config(config, datetime.now(tz=UTC).date().isoformat(), text_only, name)
    if model.note:
        note(f"{config}: {model.note}")
    total = checkpoint_total(config)
    if total is not None and total != parameters(model):
        raise InputError(f"the shape has {parameters(model):,} parameters, the checkpoint {total:,}: the config has "
                         "something that this importer does not know", file=str(config))
    entry = model.model_dump(mode="json", exclude_defaults=True)
    if as_json:
        _print_json({"schema": "planner.catalog-entry/1", "entry": "models", **model.model_dump(mode="json"),
                     **_counts(model)})
    elif output is None:
        say_yaml(dump(entry))
    if output is not None:
        (written,) = write_folder(output / "models", {f"{model.name}.yaml": dump(entry)})
        (note if as_json else say)(f"{written}: {parameters(model):,} parameters, {active_parameters(model):,} active")
    return EXIT_OK


import_entries.add_command(import_skypilot)
import_entries.add_command(import_gpuhunt)


def _print_json(data: dict[str, Any]) -> None:
    say_json(json_text(data, indent=2))
