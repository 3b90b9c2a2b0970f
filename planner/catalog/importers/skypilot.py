"""A price list from SkyPilot's vms.csv: prices of whole instances; Google's host and accelerator rows are added up."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

from planner.catalog.importers.node_types import MACHINES
from planner.catalog.importers.quotes import (
    MAX_BYTES,
    Imported,
    Quote,
    SkippedRow,
    number,
    origin_of,
    price_list,
    provider_name,
    records,
)
from planner.catalog.load import Catalog
from planner.text_io import read_text, real

COLUMNS = ("InstanceType", "AcceleratorName", "AcceleratorCount", "Region", "Price", "SpotPrice")
FILE = "vms.csv"
_L4_HOSTS = {"g2-standard-4": 1, "g2-standard-8": 1, "g2-standard-12": 1, "g2-standard-16": 1, "g2-standard-32": 1,
             "g2-standard-24": 2, "g2-standard-48": 4, "g2-standard-96": 8}
"""GPUs of Google's G2 machines, which have L4 alone (SkyPilot's gcp_catalog.py)."""
_MIB_FROM = 1024
"""Below it a SizeInMiB is in GiB: RunPod's rows say 80."""
_MOST_MIB = 2.0**30
"""A size above it says nothing of a GPU."""
_MAX_INFO = 4096
_Place = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Row:
    """One line of the file; an instance without accelerator may be Google's host of one."""

    line: int
    instance: str
    accelerator: str
    count: Decimal
    place: _Place
    price: Decimal | None
    spot: Decimal | None
    memory_gib: float | None
    host: dict[str, Decimal | None]


def read_skypilot(path: Path, catalog: Catalog, as_of: str, note: str, provider: str | None = None) -> Imported:
    """Return the price list of one provider's vms.csv. Raises InputError with file and line.

    provider: its name; by default that of the folder, as SkyPilot lays them out, or of a file that is not vms.csv.
    """
    text = read_text(path, MAX_BYTES)
    folder = provider_name(real(path).parent.name if path.name == FILE else path.stem)
    quotes, skipped = _joined(list(_rows(text, str(path))))
    source = f"{folder}/{FILE} of a SkyPilot catalog, read by planner catalog import skypilot"
    return price_list(quotes, origin_of(catalog, folder, provider, str(path), source, as_of, note), catalog, skipped)


def _rows(text: str, file: str) -> Iterator[_Row]:
    for line, row in records(text, file, COLUMNS):
        yield _Row(line, row["InstanceType"], row["AcceleratorName"],
                   number(row, "AcceleratorCount", file, line) or Decimal(0),
                   (row["Region"], row.get("AvailabilityZone", "")), number(row, "Price", file, line),
                   number(row, "SpotPrice", file, line), _memory(row.get("GpuInfo", row.get("GPUInfo", ""))),
                   _host(row, file, line))


def _host(row: dict[str, str], file: str, line: int) -> dict[str, Decimal | None]:
    """Return what a row states of the host. A file with columns of local disks says by an empty one that there is none.

    LocalDiskSize is GB of one drive (AWS), where it does not say how many there is one.
    """
    memory, drive = (number(row, column, file, line) for column in ("MemoryGiB", "LocalDiskSize"))
    drives = number(row, "LocalDiskCount", file, line) or Decimal(1)
    return {"memory": None if memory is None else memory * 2**30, "vcpus": number(row, "vCPUs", file, line),
            "disk": (drive or Decimal(0)) * drives * 10**9 if "LocalDiskSize" in row else None}


@lru_cache(maxsize=4096)
def _memory(info: str) -> float | None:
    """Return the GiB of one GPU that GpuInfo states: JSON, or a Python literal on most clouds."""
    try:
        sizes = {gpu["MemoryInfo"]["SizeInMiB"] for gpu in _parsed(info)["Gpus"]}
        size = float(sizes.pop()) if len(sizes) == 1 else 0.0
    except (ValueError, SyntaxError, TypeError, KeyError, OverflowError, RecursionError, MemoryError):
        return None
    # Nebius writes 0 where it does not say
    return None if not 0 < size <= _MOST_MIB else size if size < _MIB_FROM else size / 1024


def _parsed(info: str) -> Any:  # noqa: ANN401 - whatever the literal is
    if len(info) > _MAX_INFO:
        raise ValueError("longer than any description of GPUs")
    try:
        return json.loads(info)
    except json.JSONDecodeError:
        return ast.literal_eval(info)


def _joined(rows: list[_Row]) -> tuple[list[Quote], list[SkippedRow]]:
    """Return a quote of each instance, with the accelerator of its zone added to a host that has it apart."""
    apart = {(row.accelerator.lower(), row.count, row.place): row for row in rows if not row.instance}
    quotes, used = [], set[int]()
    for row in (row for row in rows if row.instance):
        part = None if row.accelerator else _part(row, apart)
        quotes.append(_quote(row) if part is None else _sum(row, part))
        used |= set() if part is None else {part.line}
    return quotes, _unused(apart.values(), used)


def _part(host: _Row, apart: dict[tuple[str, Decimal, _Place], _Row]) -> _Row | None:
    if host.instance in _L4_HOSTS:
        return apart.get(("l4", Decimal(_L4_HOSTS[host.instance]), host.place))
    machine = re.fullmatch(r"(.+)-(\d{1,2})g", host.instance)
    if machine is None or machine.group(1) not in MACHINES:
        return None
    names, _ = MACHINES[machine.group(1)]
    rows = [apart[key] for name in sorted(names) if (key := (name, Decimal(machine.group(2)), host.place)) in apart]
    return rows[0] if rows else None


def _quote(row: _Row) -> Quote:
    return Quote(row.line, row.instance, row.place[0], row.accelerator, row.count,
                 (("on-demand", row.price), ("spot", row.spot)), row.memory_gib, host=row.host)


def _sum(host: _Row, part: _Row) -> Quote:
    """Return a host with its accelerator; a price that one of both lacks is none, and one without a part's is zero."""
    price, spot = (None if a is None or b is None else a + b if a and b else Decimal(0)
                   for a, b in ((host.price, part.price), (host.spot, part.spot)))
    return Quote(host.line, host.instance, host.place[0], part.accelerator, part.count,
                 (("on-demand", price), ("spot", spot)), part.memory_gib, host=host.host)


def _unused(parts: Iterable[_Row], used: set[int]) -> list[SkippedRow]:
    return [SkippedRow(part.line, "an accelerator whose host is not told", f"{part.count} x {part.accelerator}")
            for part in parts if part.line not in used]
