"""What the figures of catalog entries lie within: room for whatever is built, none for a slip of the pen."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from planner.units import BYTES, Quantity

MOST_GPUS = 576
"""GPUs of a node, or of a rack that is one scale-up domain."""
MOST_WIDTH = 10**7
Width: TypeAlias = Annotated[int, Field(gt=0, le=MOST_WIDTH)]
"""Elements of a vector, or tokens that one layer or step looks at."""
Few: TypeAlias = Annotated[int, Field(gt=0, le=10_000)]
"""Things of one node, layer or group."""
Parameters: TypeAlias = Annotated[int, Field(gt=0, le=10**16)]
Rows: TypeAlias = Annotated[int, Field(ge=1, le=10**9)]
"""Of evidence."""
Factor: TypeAlias = Annotated[float, Field(ge=1e-4, le=1e4)]
"""A figure over another of its kind. No ratio or share of the catalog is below 1e-4: others come of a slip, and
numbers made with them leave the range of floats."""
Passes: TypeAlias = Annotated[float, Field(ge=0, le=1e4)]
"""Times through memory, bytes an element, or lengths at which something is half as good."""
MOST_OF_PEAK = 1.2
"""Measured rates lie a little above some on paper."""
Share: TypeAlias = Annotated[float, Field(ge=1e-4, le=MOST_OF_PEAK)]
"""Of a rate on paper."""
Held: TypeAlias = Annotated[float, Field(ge=0, le=64)]
"""Bytes of a weight, an element or a parameter's states."""
DeviceBytes: TypeAlias = Annotated[float, Quantity(
    BYTES, "GPU memory", "80 GB", "TB", "GB", "GiB", "MiB", "B", least="1 MB", most="1 PB")]
Mib: TypeAlias = Annotated[float, Field(ge=0, le=1e9)]
Hours: TypeAlias = Annotated[float, Field(gt=0, le=1e12)]
