"""`planner catalog import skypilot | gpuhunt`: other people's price files as price lists for --catalogs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import click

from planner.catalog.importers.gpuhunt import read_gpuhunt, version_date
from planner.catalog.importers.quotes import Imported
from planner.catalog.importers.skypilot import read_skypilot
from planner.catalog.load import Catalog
from planner.cli import options
from planner.cli.main import stacked
from planner.cli.options import common, is_quiet, is_verbose, open_catalog
from planner.cli.printing import note, say_json, say_yaml
from planner.errors import EXIT_OK, InputError
from planner.text_io import json_text, write_folder
from planner.units import plural
from planner.yaml_io import dump

NETWORK = ("NICs and fabric are what the catalog states of the same instance; instances that it does not know join no "
           "cluster (cluster, nics and fabric can be added).")
UNDATED = "The file states no date: as_of is the month of the import. "
SHOWN = 4


def _provider(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is not None and not re.fullmatch(r"[a-z0-9][a-z0-9._-]*", value):
        raise click.BadParameter(f"expected a name of small letters, digits, '.', '_' and '-', got {value!r}")
    return value


_price_options = stacked(
    click.argument("file", type=click.Path(path_type=Path)),
    click.option("-o", "--output", type=click.Path(path_type=Path), metavar="DIR",
                 help="Catalog folder to write prices/PROVIDER.yaml into, for --catalogs. Default: print it."),
    click.option("--provider", metavar="NAME", callback=_provider,
                 help="The provider's name, if the file's location does not give it; for a zip, the provider to read."),
    click.option("--as-of", metavar="YYYY-MM", callback=options.as_of,
                 help="When the prices were quoted. Default: the date of gpuhunt's version, else this month."))
"""What both imports of prices take."""


@click.command("skypilot")
@_price_options
@common
def import_skypilot(file: Path, output: Path | None, provider: str | None, as_of: str | None, as_json: bool,
                    catalogs: tuple[Path, ...]) -> int:
    """Read one provider's prices from SkyPilot's vms.csv, whose folder names the provider."""
    catalog = open_catalog(catalogs)
    _answer([read_skypilot(file, catalog, *_dated(as_of), provider)], catalog, output, as_json)
    return EXIT_OK


@click.command("gpuhunt")
@_price_options
@common
def import_gpuhunt(file: Path, output: Path | None, provider: str | None, as_of: str | None, as_json: bool,
                   catalogs: tuple[Path, ...]) -> int:
    """Read prices from a gpuhunt CSV named after its provider, or from a zip of them."""
    catalog = open_catalog(catalogs)
    _answer(read_gpuhunt(file, catalog, *_dated(as_of or version_date(file)), provider), catalog, output, as_json)
    return EXIT_OK


def _dated(as_of: str | None) -> tuple[str, str]:
    """Return the date to record and the list's note; when a file was written says nothing of its prices."""
    month = datetime.now(tz=UTC).strftime("%Y-%m")
    return as_of or month, NETWORK if as_of else UNDATED + NETWORK


def _answer(imported: list[Imported], catalog: Catalog, output: Path | None, as_json: bool) -> None:
    """Print or write the price lists, and say on stderr what became of the rows."""
    for price_list in [] if is_quiet() else imported:
        for line in _summary(price_list, price_list.origin.provider in catalog.files("prices")):
            note(line)
    lists = [listed.prices for listed in imported if listed.prices is not None]
    if not lists:
        raise InputError("no row is an offer of a node type of the catalog", file=imported[0].origin.file)
    if output is None and not as_json and len(lists) > 1:
        raise InputError(f"prices of {len(lists)} providers: write them with -o DIR, or choose one with --provider: "
                         + ", ".join(prices.name for prices in lists))
    entries = [prices.model_dump(mode="json", exclude_defaults=True) for prices in lists]
    if output is not None:
        write_folder(output / "prices", {f"{entry['name']}.yaml": dump(entry) for entry in entries})
    if as_json:
        skipped = {listed.origin.provider: dict(_reasons(listed)) for listed in imported}
        say_json(json_text({"schema": "planner.catalog-import/1", "entry": "prices", "entries": entries,
                            "skipped": skipped}, indent=2))
    elif output is None:
        say_yaml(dump(entries[0]))


def _reasons(imported: Imported) -> list[tuple[str, int]]:
    counts = Counter(skip.reason for skip in imported.skipped)
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _summary(imported: Imported, known: bool) -> Iterable[str]:
    """Yield what became of a file's rows: offers, and what was skipped by reason; every line of it with -v."""
    offers = imported.prices.offers if imported.prices else ()
    origin = imported.origin
    instances = len({offer.instance for offer in offers})
    yield (f"{origin.provider}: {plural(len(offers), 'offer')} of {plural(instances, 'instance')} from "
           f"{plural(imported.rows, 'row')} of {origin.file}, as of {origin.as_of}")
    if known and offers:
        yield f"  takes the place of the price list {origin.provider} (another name beside it: --provider NAME)"
    for reason, count in _reasons(imported):
        kinds = Counter(skip.what for skip in imported.skipped if skip.reason == reason)
        shown = [what for what, _ in sorted(kinds.items(), key=lambda item: (-item[1], item[0]))[:SHOWN]]
        rest = ", ..." if len(kinds) > SHOWN else ""
        yield f"  skipped {count:,}, {reason}: {'; '.join(shown)}{rest}"
    for skip in imported.skipped if is_verbose() else ():
        yield f"{origin.file}:{skip.line}: {skip.reason}: {skip.what}"
