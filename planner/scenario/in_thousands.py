"""Lengths in thousands of tokens, which a power of two may be meant by."""

from __future__ import annotations

import re
from collections.abc import Iterator

from planner.scenario.default import Default
from planner.scenario.kind import workloads_in
from planner.units import trimmed
from planner.yaml_io import Document

_THOUSANDS = re.compile(r"(?P<count>\d{1,6}) ?k(?: ?tok(?:en)?s?)?", re.IGNORECASE | re.ASCII)


def thousands(document: Document) -> Iterator[Default]:
    """Yield the lengths written in thousands (8k) that a power of two may be meant by, with what they are."""
    for _, work in workloads_in(document.data):
        for key in ("sequence_length", "max_model_len"):
            match = _THOUSANDS.fullmatch(trimmed(text, key)) if isinstance(text := work.get(key), str) else None
            count = int(match["count"]) if match else 0
            if count.bit_count() == 1:
                yield Default(name=key, value=f"{count}000 tokens",
                              why=f"{text} is in thousands: write {count * 1024} for {count} x 1,024")
