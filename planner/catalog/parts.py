"""What a network between nodes is built of: switches, adapters, transceivers and cables."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from planner.catalog.ranges import Few
from planner.catalog.sourced import Sourced
from planner.units import ByteRate, Usd, Watts

PartRole = Literal["switch", "nic", "optic", "cable"]


class NetPart(Sourced):
    """One part of a network, and its price where one is known.

    A switch that runs at several speeds is one entry for each speed.
    """

    role: PartRole
    port_rate: ByteRate
    """Bytes/s of one port, per direction."""
    ports: Annotated[int, Field(ge=2, le=100_000)] | None = None
    """Ports of a switch at `port_rate`; no other part has them."""
    ports_per_cage: Few = 1
    """Ports that share one transceiver at a switch: two with twin-port OSFP."""
    ends: bool = False
    """Whether the price of a cable includes what is plugged in at both ends, as of copper and of assembled links."""
    price: Usd | None = None
    power: Watts | None = None
    """Drawn by a switch with all ports in use; without it none is counted."""

    @model_validator(mode="after")
    def _fields_of_its_role(self) -> NetPart:
        if (self.ports is not None) != (self.role == "switch"):
            raise ValueError("a switch has ports, and no other part has")
        if self.ends and self.role != "cable":
            raise ValueError("ends belong to a cable")
        return self
