"""The axes that `--layout` may hold: the trainer's, and those of the rollouts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from planner.errors import InputError
from planner.layouts.axes import RECOMPUTE

TRAINED = {"tp": "tp", "pp": "pp", "cp": "cp", "ep": "ep", "dp": "dp", "recompute": "recompute",
           "offload_optimizer": "offload"}
"""Of the trainer, and the axis that each is."""
AXES = (*TRAINED, "swap", "rollout_gpus", "rollout_tp", "rollout_pp", "rollout_ep", "rollout_dp")
"""What may be held: swap 1 lets states wait on the host while answers are drawn; rollout_gpus are theirs alone."""


class Held:
    """Axes held at one value."""

    def __init__(self, held: Mapping[str, str]) -> None:
        """Read the values. Raises InputError for another axis, or what is no value of one."""
        self.values: dict[str, float] = {}
        for axis, text in held.items():
            if axis not in AXES:
                raise InputError(f"layout: no axis {axis!r} of reinforcement learning: {', '.join(AXES)}")
            if axis == "recompute":
                if text not in ("none", "full"):
                    raise InputError(f"layout: recompute={text}: expected none or full")
                self.values[axis] = RECOMPUTE.index(text)
            elif not text.isdecimal():
                raise InputError(f"layout: {axis}={text}: expected a whole number")
            else:
                self.values[axis] = int(text)

    def __iter__(self) -> Iterator[tuple[str, float]]:
        """Yield every axis that is held, with its value."""
        yield from sorted(self.values.items())

    def has(self, axis: str) -> bool:
        """Say whether an axis is held."""
        return axis in self.values

    def keeps(self, axis: str, value: float) -> bool:
        """Say whether a value is the one that is held, if any is."""
        return self.values.get(axis, value) == value

    def keeps_row(self, row: Mapping[str, float]) -> bool:
        """Say the same of the axes of a trainer's layout."""
        return not self.values or all(self.keeps(axis, row.get(name, 0.0 if name == "offload" else 1))
                                      for axis, name in TRAINED.items())
