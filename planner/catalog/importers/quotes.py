"""Quoted prices of instances: rows of a CSV read strictly, matched to node types, gathered into a price list.

A row must leave one GPU of the catalog and one node type; whatever it leaves open is skipped, with the reason.
"""

from __future__ import annotations

import csv
import io
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from planner.catalog.importers.node_types import NodeTypes, Open
from planner.catalog.load import Catalog
from planner.catalog.price import PriceList, Term
from planner.errors import InputError
from planner.units import BYTES, exact
from planner.yaml_io import dump, parse, validate

MAX_BYTES = 64 * 2**20
MOST_NAME = 200
_SMALLEST, _LARGEST = Decimal("0.00001"), Decimal(10**6)
_NUMBER = re.compile(r"(\d{1,30}(\.\d{0,30})?|\.\d{1,30})([eE][-+]?\d{1,2})?")


@dataclass(frozen=True, slots=True)
class Quote:
    """One row of a price file: an instance in a region, its GPUs, and what it costs whole under each term."""

    line: int
    instance: str
    region: str
    gpu: str
    count: Decimal
    prices: tuple[tuple[Term, Decimal | None], ...]
    memory_gib: float | None = None
    words: str = ""
    host: Mapping[str, Decimal | None] = field(default_factory=dict)
    """What the file states of the host: `memory` and `disk` in bytes (0 is no disk), `vcpus`."""


@dataclass(frozen=True, slots=True)
class SkippedRow:
    """A row, or one price of it, that became no offer: why, and what it says."""

    line: int
    reason: str
    what: str


@dataclass(frozen=True, slots=True)
class Origin:
    """What a price list says of itself: its provider (and the names it goes by), source, date and note."""

    provider: str
    called: tuple[str, ...]
    file: str
    source: str
    as_of: str
    note: str


@dataclass(frozen=True, slots=True)
class Imported:
    """One provider's price list, none where no row is an offer, and what was skipped of the rows behind it."""

    origin: Origin
    prices: PriceList | None
    rows: int
    skipped: tuple[SkippedRow, ...]


def provider_name(text: str) -> str:
    """Return text in the form of a catalog name."""
    return re.sub(r"[^a-z0-9._-]+", "-", text.lower()).strip("-._") or "imported"


def origin_of(catalog: Catalog, called: str, provider: str | None, file: str, source: str, as_of: str,
              note: str) -> Origin:
    """Return what a list says of itself whose file is of a provider `called` so.

    Its name is `provider`, else that of the catalog's list which goes by that name, else the name itself.
    """
    known = next((prices.name for prices in catalog.price_lists if called in {prices.name, *prices.aliases}), called)
    name = provider or known
    return Origin(name, (name, called), file, source, as_of, note)


def records(text: str, file: str, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield line and values by column. Raises InputError where it is no CSV with these columns."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        missing = [column for column in columns if column not in header]
        if missing or len(set(header)) != len(header):
            problem = f"{', '.join(missing)} missing" if missing else "a column comes twice"
            raise InputError(f"expected a CSV with the columns {', '.join(columns)}: {problem}", file=file, line=1)
        for fields in reader:
            if fields and len(fields) != len(header):
                raise InputError(f"expected {len(header)} values, as the header has columns, got {len(fields)}",
                                 file=file, line=reader.line_num)
            if fields:
                yield reader.line_num, dict(zip(header, map(str.strip, fields), strict=True))
    except csv.Error as error:
        raise InputError(f"not CSV: {error}", file=file, line=max(reader.line_num, 1)) from None


def number(row: dict[str, str], column: str, file: str, line: int) -> Decimal | None:
    """Return a number from zero to a million, none where the cell is empty. Raises InputError."""
    text = row.get(column, "")
    if not text:
        return None
    value = Decimal(text) if _NUMBER.fullmatch(text) else None
    if value is None or not (value == 0 or _SMALLEST <= value <= _LARGEST):
        raise InputError(f"{column}: expected a number from 0 to a million, got {text[:40]!r}", file=file, line=line)
    return value


def price_list(quotes: Iterable[Quote], origin: Origin, catalog: Catalog,
               skipped: Sequence[SkippedRow] = ()) -> Imported:
    """Return the offers of all quotes that are one node type; `skipped` are rows that came to no quote.

    Zones and rows of one instance, region and term become one offer, at the median price that was quoted.
    """
    nodes, left, rows = NodeTypes(catalog, origin.called), list(skipped), len(skipped)
    prices: dict[tuple[str, str, str, Term], list[Decimal]] = defaultdict(list)
    networks: dict[tuple[str, str], dict[str, Any]] = {}
    hosts: dict[tuple[str, str], dict[str, list[Decimal]]] = defaultdict(lambda: defaultdict(list))
    for quote in quotes:
        rows += 1
        try:
            node, network = nodes.find(quote.instance, quote.gpu, quote.count, quote.memory_gib, quote.words)
            stated = _stated(quote)
        except Open as reason:
            left.append(SkippedRow(quote.line, *reason.args))
            continue
        networks[quote.instance, node] = network
        for name, value in quote.host.items():
            if value is not None:
                hosts[quote.instance, node][name].append(value)
        for term, price in stated:
            if price:
                prices[quote.instance, node, quote.region, term].append(price)
            else:
                left.append(SkippedRow(quote.line, "a price of zero", f"{quote.instance} in {quote.region}, {term}"))
    offers = [{"instance": instance, "node": node, "region": region, "term": term, **_median(quoted),
               **_host(hosts[instance, node]), **deepcopy(networks[instance, node])}
              for (instance, node, region, term), quoted in sorted(prices.items())]
    left.sort(key=lambda skip: (skip.line, skip.reason, skip.what))
    return Imported(origin, _checked(offers, origin) if offers else None, rows, tuple(left))


def _stated(quote: Quote) -> list[tuple[Term, Decimal]]:
    stated = [(term, price) for term, price in quote.prices if price is not None]
    if max(len(quote.instance), len(quote.region)) > MOST_NAME:
        raise Open(f"a name of more than {MOST_NAME} characters", quote.instance[:MOST_NAME])
    if not stated or not quote.region:
        raise Open("no price" if quote.region else "no region", quote.instance)
    return stated


def _host(stated: Mapping[str, list[Decimal]]) -> dict[str, Any]:
    """Return what all rows of an instance state of its host at least."""
    host: dict[str, Any] = {}
    for name, value in ((name, min(values)) for name, values in stated.items()):
        if name == "disk" and not value:
            host[name] = "none"
        elif value >= 1:
            host[name] = int(value) if name == "vcpus" else exact(float(value), BYTES, "TB", "GiB", "GB", "MiB", "B")
    return {"host": host} if host else {}


def _median(prices: list[Decimal]) -> dict[str, str]:
    """Return the lower median, a price that was quoted, and a note where others were."""
    prices.sort()
    price = {"price": f"{prices[(len(prices) - 1) // 2]:f} USD/h"}
    if prices[0] == prices[-1]:
        return price
    return price | {"note": f"median of {len(prices)} rows, {prices[0]:f} to {prices[-1]:f} USD/h"}


def _checked(offers: list[dict[str, Any]], origin: Origin) -> PriceList:
    """Return the list as it will be read from its file. Raises InputError where it is too long for one."""
    entry = {"name": origin.provider, "source": origin.source, "as_of": origin.as_of, "kind": "quoted",
             "note": origin.note, "offers": offers}
    try:
        return validate(parse(dump(entry), ""), PriceList)
    except InputError as error:
        raise InputError(f"the price list of {len(offers):,} offers cannot be read back: {error.problem}",
                         file=origin.file) from None
