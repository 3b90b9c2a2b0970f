"""`planner catalog list | show | check | import`: what exists, and where each fact comes from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import click

from planner.catalog import checking
from planner.catalog.architecture import Model
from planner.catalog.diffusion import Diffusion
from planner.catalog.engine import Engine
from planner.catalog.figures import figures
from planner.catalog.hardware import Fabric, Gpu, Node
from planner.catalog.load import KINDS, Catalog
from planner.catalog.price import PriceList
from planner.catalog.sourced import Kind, Sourced
from planner.catalog.speed import Speeds
from planner.catalog.spelling import canonical
from planner.catalog.stack import Stack
from planner.cli.import_prices import import_gpuhunt, import_skypilot
from planner.cli.main import everywhere
from planner.cli.options import common, console, is_quiet, is_verbose, open_catalog
from planner.cli.printing import note, say, say_json, say_yaml
from planner.errors import EXIT_OK, InputError, UnknownName, did_you_mean
from planner.money.rent import usual_candidate
from planner.physics.diffusion.shape import parameters as blocks_of
from planner.physics.shapes import active_parameters, parameters
from planner.render.page import Head, Page
from planner.render.topology import topology_lines
from planner.render.topology_svg import topology_svg
from planner.text_io import json_text, write_folder, write_text
from planner.units import plural, show_count
from planner.yaml_io import dump

ALL_KINDS = (*KINDS, "calibration")


def entries(catalog: Catalog, kind: str) -> list[Sourced]:
    """Return every entry of `kind`, sorted by name."""
    return catalog.calibration_entries() if kind == "calibration" else list(catalog.all(kind, KINDS[kind]))


def find(catalog: Catalog, name: str) -> tuple[str, Sourced]:
    """Return the entry called `name`, of any kind, and its kind; `nodes/x` names the kind as well.

    Raises UnknownName, or InputError where entries of two kinds share the name.
    """
    kind, slash, rest = name.partition("/")
    kinds, wanted = ((kind,), rest) if slash and kind in ALL_KINDS else (ALL_KINDS, name)
    matches = [(k, entry) for k in kinds if (entry := _find(catalog, k, wanted)) is not None]
    if not matches:
        raise UnknownName("catalog entry", name, [n for k in kinds for n in catalog.names(k)])
    if len(matches) > 1:
        choices = " or ".join(f"{k}/{entry.name}" for k, entry in matches)
        raise InputError(f"{name!r} is the name of several entries: write {choices}")
    return matches[0]


def _find(catalog: Catalog, kind: str, name: str) -> Sourced | None:
    find_entry = {"gpus": catalog.gpu, "nodes": catalog.node, "fabrics": catalog.fabric,
                  "models": catalog.model, "stacks": catalog.stack}.get(kind)
    if find_entry is not None:
        try:
            return find_entry(name)
        except UnknownName:
            return None
    wanted = canonical(name)
    return next((e for e in entries(catalog, kind) if wanted in map(canonical, (e.name, *e.aliases))), None)


def key_facts(entry: Sourced) -> str:
    """Return the few facts by which one knows an entry, for `catalog list`."""
    data: Mapping[str, Any] = entry.model_dump(mode="json")
    match entry:
        case Gpu():
            parts = [entry.architecture, data["memory"], data["memory_bandwidth"],
                     f"bf16 {data['peak'].get('bf16', 'none')}"]
        case Node():
            parts = [f"{entry.gpus} x {entry.gpu}", entry.scaleup or "no scale-up fabric",
                     f"{entry.nics.count} x {data['nics']['bandwidth']}"]
        case Fabric():
            parts = [entry.level, entry.topology, data["bandwidth"] or "bandwidth of the NICs"]
        case Model():
            parts = [f"{show_count(parameters(entry))} parameters", f"{entry.layers} layers",
                     f"hidden {entry.hidden}"]
        case PriceList():
            parts = [f"{len(entry.offers)} offers", *dict.fromkeys(offer.term for offer in entry.offers)]
        case Stack():
            stages = " ".join(map(str, entry.zero_stages))
            parts = [f"ZeRO {stages}", "pipeline" if entry.pipeline else "no pipeline"]
        case Engine():
            share = (f"{entry.memory_fraction:g} of {entry.fraction_of}" if entry.fraction_of != "nothing"
                     else "no memory fraction")
            parts = [share, f"{plural(entry.block, 'token')} a block",
                     _releases(release.version for release in entry.releases)]
        case Speeds():
            own = sorted({name for release in entry.releases for name in release.architectures})
            parts = [_releases(release.version for release in entry.releases),
                     f"own figures for {' '.join(own)}" if own else "the same for all GPUs"]
        case _:
            parts = [entry.note] if entry.note else [figure.path for figure in figures(entry)[:4]]
    return ", ".join(parts)


def _releases(versions: Iterable[str]) -> str:
    """Return the versions at which an entry's figures change."""
    return f"releases {' '.join(dict.fromkeys(versions))}"


class ByName(click.Group):
    """The group of the catalog: a name that is no command of its own is one of an entry, which is shown."""

    def resolve_command(self, ctx: click.Context, args: list[str]
                        ) -> tuple[str | None, click.Command | None, list[str]]:
        """Put `show` before the name of an entry."""
        mine = args[0].startswith("-") or args[0] in self.commands or "mean" in did_you_mean(args[0], self.commands)
        return super().resolve_command(ctx, args if mine else ["show", *args])


@click.group("catalog", cls=ByName, no_args_is_help=True)
@everywhere
def command() -> None:
    """Show what exists, and where each fact comes from."""


@command.command("list")
@click.argument("kind", required=False, type=click.Choice(ALL_KINDS, case_sensitive=False), metavar="[KIND]")
@common
def list_entries(kind: str | None, as_json: bool, catalogs: tuple[Path, ...]) -> int:
    """List the entries of one KIND, or of all: gpus, nodes, fabrics, models, prices, stacks, calibration."""
    catalog = open_catalog(catalogs)
    by_kind = {k: entries(catalog, k) for k in ([kind] if kind else ALL_KINDS)}
    if as_json:
        _print_json({"schema": "planner.catalog-list/1"} | {
            k: [{"name": e.name, "facts": key_facts(e), "kind": e.kind, "as_of": e.as_of, "source": e.source}
                for e in listed] for k, listed in by_kind.items()})
        return EXIT_OK
    page = Page(console())
    for k, listed in by_kind.items():
        page.heading(f"{k} ({len(listed)})")
        page.table([Head("name"), Head("facts"), Head("kind"), Head("as of")],
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
    page.table([Head("figure"), Head("value"), Head("kind"), Head("as of"), Head("source")],
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
@click.option("--text-only", is_flag=True, help="Import only the language model of a vision-language model.")
@click.option("--name", metavar="NAME", help="Name of the entry. Default: from the config, file or folder.")
@common
def import_hf(config: Path, output: Path | None, text_only: bool, name: str | None, as_json: bool,
              catalogs: tuple[Path, ...]) -> int:
    """Read a model's config.json; a safetensors index beside it must agree with the count.

    CONFIG is also the folder of a diffusion model (diffusers), or its model_index.json.
    """
    from planner.catalog.importers.diffusers import import_diffusers, is_diffusers
    from planner.catalog.importers.hf import checkpoint_total, import_config

    today = datetime.now(tz=UTC).date().isoformat()
    if is_diffusers(config):
        if text_only:
            raise InputError("--text-only is of models that see: a diffusion model has none", file=str(config))
        made = import_diffusers(config, today, open_catalog(catalogs), blocks_of, name)
        return _written(made, "diffusion", output, as_json)
    model = import_config(config, today, text_only, name)
    if model.note:
        note(f"{config}: {model.note}")
    total = checkpoint_total(config)
    if total is not None and total != parameters(model):
        raise InputError(f"the shape has {parameters(model):,} parameters, the checkpoint {total:,}: the config has "
                         "something that this importer does not know", file=str(config))
    return _written(model, "models", output, as_json)


def _written(model: Model | Diffusion, kind: str, output: Path | None, as_json: bool) -> int:
    """Print an imported entry, or write it into a catalog folder."""
    entry, counts = model.model_dump(mode="json", exclude_defaults=True), _counts(model)
    if as_json:
        _print_json({"schema": "planner.catalog-entry/1", "entry": kind, **model.model_dump(mode="json"), **counts})
    elif output is None:
        say_yaml(dump(entry))
    if output is not None:
        (written,) = write_folder(output / kind, {f"{model.name}.yaml": dump(entry)})
        (note if as_json else say)(
            f"{written}: {parameters(model):,} parameters, {active_parameters(model):,} active"
            if isinstance(model, Model) else f"{written}: a denoiser of {model.denoiser.parameters:,} parameters")
    return EXIT_OK


import_entries.add_command(import_skypilot)
import_entries.add_command(import_gpuhunt)


def _print_json(data: dict[str, Any]) -> None:
    say_json(json_text(data, indent=2))
