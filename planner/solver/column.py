"""What a column of the fleet carries, once."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """One way to do one workload. Less is better in every field but `key` and `candidate`."""

    key: int
    """Tells layouts apart whatever order they come in; the last tie-break."""
    candidate: int
    """Which hardware: an offer serves the columns of its candidate."""
    nodes: int
    spare_nodes: int
    gpus: int
    duration_us: int
    upper_us: int
    """Upper quantile of the duration."""
    energy_wh: int
    power_w: int
    checkpoint_bytes: int
    complexity: int
    """How much there is to set up."""
    mean_us: int = 0
    """Mean duration, which is paid where costs are means; 0 where the duration itself is."""

    @property
    def paid_us(self) -> int:
        """What is paid for."""
        return self.mean_us or self.duration_us

    @property
    def rented_nodes(self) -> int:
        """Nodes paid for: those of the layout and the spares."""
        return self.nodes + self.spare_nodes
