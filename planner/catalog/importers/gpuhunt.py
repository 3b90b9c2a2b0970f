"""Price lists from gpuhunt's catalogs: a CSV of one provider, or a zip of such, read in memory."""

from __future__ import annotations

import re
import zipfile
import zlib
from dataclasses import dataclass
from decimal import Decimal
from io import BytesIO
from pathlib import Path, PurePosixPath

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
from planner.errors import InputError
from planner.text_io import decoded, read_bytes, real

COLUMNS = ("instance_name", "location", "price", "gpu_count", "gpu_name", "gpu_memory", "spot")
MAX_MEMBERS = 100
PACKING = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
VENDORS = {"", "nvidia", "amd"}
"""Those whose GPUs the catalog can hold; catalogs of before the column had NVIDIA's, and `tpu-` names."""
_VERSION = re.compile(r"(20\d\d)(\d\d)(\d\d)-\d+")


@dataclass(frozen=True, slots=True)
class PriceFile:
    """The CSV of one provider: its name, what messages call the file, and its text."""

    provider: str
    file: str
    text: str


def version_date(path: Path) -> str | None:
    """Return the date of gpuhunt's version (20260818-42) that the file or its folder is called; none where neither."""
    for name in (path.stem, real(path).parent.name):
        if match := _VERSION.fullmatch(name):
            return "-".join(match.groups())
    return None


def members(path: Path, provider: str | None = None) -> list[PriceFile]:
    """Return the CSVs of a file; of a zip with several, that of `provider` where it is given. Raises InputError."""
    raw = read_bytes(path, MAX_BYTES)
    if not (path.suffix.lower() == ".zip" or zipfile.is_zipfile(BytesIO(raw))):
        return [PriceFile(provider_name(path.stem), str(path), decoded(raw, str(path)))]
    lists = _unzipped(raw, path)
    if provider is None or len(lists) == 1:
        return lists
    chosen = [member for member in lists if member.provider == provider]
    if not chosen:
        held = ", ".join(member.provider for member in lists)
        raise InputError(f"--provider {provider}: the zip has no {provider}.csv; it holds {held}", file=str(path))
    return chosen


def _unzipped(raw: bytes, path: Path) -> list[PriceFile]:
    """Return the CSVs of a zip by name, nothing written to disk and no more read than is allowed in all."""
    try:
        with zipfile.ZipFile(BytesIO(raw)) as archive:
            listed = [info for info in archive.infolist() if _is_csv(info.filename)]
            if any(info.compress_type not in PACKING for info in listed):
                raise InputError("expected a zip packed by deflate, as gpuhunt's are", file=str(path))
            if not listed or len(listed) > MAX_MEMBERS:
                raise InputError(f"expected a zip with 1 to {MAX_MEMBERS} CSV files, got {len(listed)}", file=str(path))
            lists, room = [], MAX_BYTES
            for info in sorted(listed, key=lambda info: info.filename):
                with archive.open(info) as member:
                    # the size that the zip states is a claim
                    text = member.read(room + 1)
                room -= len(text)
                if room < 0:
                    raise InputError(f"unpacked, the CSV files are larger than {MAX_BYTES >> 20} MiB", file=str(path))
                file = f"{path}/{info.filename}"
                lists.append(PriceFile(provider_name(PurePosixPath(info.filename).stem), file, decoded(text, file)))
    except (zipfile.BadZipFile, OSError, zlib.error, EOFError, RuntimeError, ValueError) as error:
        raise InputError(f"not a zip that can be read: {error}", file=str(path)) from None
    if len({member.provider for member in lists}) < len(lists):
        raise InputError("two CSV files in the zip have the same provider", file=str(path))
    return lists


def _is_csv(name: str) -> bool:
    return name.lower().endswith(".csv") and not PurePosixPath(name).name.startswith(".")


def read_gpuhunt(path: Path, catalog: Catalog, as_of: str, note: str, provider: str | None = None) -> list[Imported]:
    """Return a price list for each CSV of a file. Raises InputError with file and line.

    provider: what to call it, by default as the CSV is called; of a zip with several, the one to read.
    """
    return [_read(member, catalog, as_of, note, provider) for member in members(path, provider)]


def _read(member: PriceFile, catalog: Catalog, as_of: str, note: str, provider: str | None) -> Imported:
    quotes: list[Quote] = []
    skipped: list[SkippedRow] = []
    for line, row in records(member.text, member.file, COLUMNS):
        vendor = row.get("gpu_vendor", "").lower()
        if vendor not in VENDORS or row["gpu_name"].startswith("tpu-"):
            skipped.append(SkippedRow(line, "neither an NVIDIA nor an AMD GPU", row["gpu_name"]))
            continue
        quotes.append(_quote(line, row, member.file))
    source = f"{PurePosixPath(member.file).name} of a gpuhunt catalog, read by planner catalog import gpuhunt"
    origin = origin_of(catalog, member.provider, provider, member.file, source, as_of, note)
    return price_list(quotes, origin, catalog, skipped)


def _quote(line: int, row: dict[str, str], file: str) -> Quote:
    spot = row["spot"].lower()
    if spot not in {"true", "false"}:
        raise InputError(f"spot: expected True or False, got {row['spot'][:40]!r}", file=file, line=line)
    memory = number(row, "gpu_memory", file, line)
    host, disk = (number(row, column, file, line) for column in ("memory", "disk_size"))
    return Quote(line, row["instance_name"], row["location"], row["gpu_name"],
                 number(row, "gpu_count", file, line) or Decimal(0),
                 (("spot" if spot == "true" else "on-demand", number(row, "price", file, line)),),
                 float(memory) if memory else None, row.get("flags", ""),
                 # gpuhunt counts in GB, and says 0 for a disk of which it knows nothing
                 {"memory": host and host * 10**9, "vcpus": number(row, "cpu", file, line),
                  "disk": disk * 10**9 if disk else None})
