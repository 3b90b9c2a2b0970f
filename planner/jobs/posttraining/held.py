"""The axes that `--layout` may hold: the trainer's, and those of the rollouts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar, get_args

from planner.catalog.posttraining import TrainerKind
from planner.errors import InputError
from planner.jobs.posttraining.layouts import SEARCHED
from planner.layouts.axes import RECOMPUTE

Word = TypeVar("Word", bound=str)

TRAINED = {"tp": "tp", "pp": "pp", "cp": "cp", "ep": "ep", "dp": "dp", "recompute": "recompute",
           "offload_optimizer": "offload", "offload_activations": "offload_activations"}
"""Of the trainer, and the axis that each is."""
WORDS = {"loss": ("plain", "chunked", "fused"), "rollout_format": ("bf16", "fp8", "mxfp8")}
"""How log-probabilities are taken of logits, and the weights that answers are drawn with."""
OWN = {"micro_batch_tokens": "packed", "memory_fraction": "memory_fraction"}
"""Tokens of a micro-batch and the engine's share of a GPU, which a framework has defaults for as it has of WORDS."""
KINDS: tuple[TrainerKind, ...] = get_args(TrainerKind)
"""Kinds of trainers, of which a framework has some."""
AXES = (*TRAINED, "trainer", "swap", "rollout_gpus", "rollout_tp", "rollout_pp", "rollout_ep", "rollout_dp", *OWN,
        *WORDS)
"""What may be held: trainer is one of KINDS; swap 1 lets states wait on the host while answers are drawn; rollout_gpus
are theirs alone."""


class Held:
    """Axes held at one value."""

    def __init__(self, held: Mapping[str, str]) -> None:
        """Read the values. Raises InputError for another axis, or what is no value of one."""
        self.values: dict[str, float] = {}
        self.own: dict[str, object] = {}
        """What is held of a framework's defaults, by its field."""
        for axis, text in held.items():
            if axis not in AXES:
                raise InputError(f"layout: no axis {axis!r} of reinforcement learning: {', '.join(AXES)}")
            if axis in WORDS:
                self.own[axis] = _word(axis, text, WORDS[axis])
                continue
            self.values[axis] = _number(axis, text)
            if axis in OWN:
                self.own[OWN[axis]] = self.values[axis]

    @property
    def beyond(self) -> dict[str, int]:
        """What is held of the trainer's layout and may not be among what is searched."""
        return {**{axis: int(self.values[axis]) for axis in SEARCHED if self.values.get(axis, 1) > 1},
                **({"offload_activations": 1} if self.values.get("offload_activations") else {})}

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
        return not self.values or all(self.keeps(axis, row.get(name, float("offload" not in name)))
                                      for axis, name in TRAINED.items())


def _number(axis: str, text: str) -> float:
    """Return the value of an axis, a word as its place among those that there are. Raises InputError."""
    if axis == "recompute":
        return RECOMPUTE.index(_word(axis, text, ("none", "full")))
    if axis == "trainer":
        return KINDS.index(_word(axis, text, KINDS))
    if axis == "memory_fraction":
        whole, _, part = text.partition(".")
        if not ((whole.isdecimal() and part.isdecimal()) or text == "1") or not 0 < float(text) <= 1:
            raise InputError(f"layout: {axis}={text}: expected a share above 0, at most 1")
        return float(text)
    if not text.isdecimal() or (axis == "micro_batch_tokens" and not int(text)):
        raise InputError(f"layout: {axis}={text}: expected a whole number")
    return int(text)


def _word(axis: str, text: str, words: Sequence[Word]) -> Word:
    """Return a word of some. Raises InputError for another."""
    for word in words:
        if word == text:
            return word
    raise InputError(f"layout: {axis}={text}: expected {', '.join(words[:-1])} or {words[-1]}")
