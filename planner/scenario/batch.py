"""How many sequences a step has: counted, or by their tokens, and by how much a layout may miss it."""

from __future__ import annotations

import re
from math import ceil, floor
from typing import Annotated, NamedTuple

from pydantic import PlainSerializer, PlainValidator

from planner.units import parse_count, trimmed
from planner.units.reading import SEQUENCES

_BATCH = re.compile(r"([^+±]+)(?:(?:\+-|\+/-|±) ?(\d+(?:\.\d+)?) ?%)?", re.ASCII)
MOST_SEQUENCES = 10**6
WIDEST = 0.25
ROUNDED = 0.05
"""Share by which a batch in tokens may be missed: 4 M tokens of 8,192 are 512 sequences, as papers have it."""


class Batch(NamedTuple):
    """Sequences of a global batch, and the share by which a layout may miss it to fit its data-parallel degree."""

    sequences: int
    tolerance: float = 0.0
    tokens: int = 0
    """Of a step, where it is counted in these: the sequences follow from their length."""

    def __str__(self) -> str:
        """Write the batch as it is read."""
        count = f"{self.tokens} tokens" if self.tokens else f"{self.sequences} sequences"
        return count + (f" +- {self.tolerance * 100:g}%" if self.tolerance else "")

    def of(self, length: int) -> Batch:
        """Return the batch in sequences of `length` tokens: of those within ROUNDED the one that halves most often."""
        if not self.tokens:
            return self
        asked = self.tokens / length
        near = range(max(1, ceil(asked * (1 - ROUNDED))), floor(asked * (1 + ROUNDED)) + 1)
        return Batch(max(near, key=lambda count: (count & -count, -abs(count - asked)), default=max(1, round(asked))),
                     self.tolerance)


def _global_batch(value: object) -> Batch:
    if isinstance(value, Batch):
        return value
    if isinstance(value, str):
        match = _BATCH.fullmatch(trimmed(value, "global batch"))
        if match is None:
            raise ValueError(f"{value!r} is not a global batch: write for example '2048 sequences' or "
                             "'2048 sequences +- 2%'")
        value, tolerance = match.group(1), float(match.group(2) or 0) / 100
    else:
        tolerance = 0.0
    if tolerance > WIDEST:
        raise ValueError(f"a global batch may be missed by at most {WIDEST:.0%}, got {tolerance:.0%}")
    if isinstance(value, str) and "tok" in value.lower():
        return Batch(0, tolerance, parse_count(value, "global batch", "4 M tokens"))
    sequences = parse_count(value, "global batch", "2048 sequences", SEQUENCES)
    if sequences > MOST_SEQUENCES:
        raise ValueError(f"{sequences:,} sequences of a step are more than the {MOST_SEQUENCES:,} that are searched; "
                         "write '4 M tokens' for one in tokens")
    return Batch(sequences, tolerance)


GlobalBatch = Annotated[Batch, PlainValidator(_global_batch, json_schema_input_type=str | int),
                        PlainSerializer(str, return_type=str)]
