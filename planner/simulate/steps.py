"""What a replica is: the seconds of its steps, its cache, and how it forms a batch."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from planner.errors import InputError

Mode = Literal["mixed", "prefill first"]


class StepModel(Protocol):
    """Seconds of one step of an engine, by what the step does."""

    def fixed(self, sequences: int) -> float:
        """Seconds of a pure decode step of that many sequences over empty caches."""

    def per_token(self, sequences: int) -> float:
        """More seconds of it for each cached token of all its sequences together."""

    def prefill(self, tokens: int, context: int, ranks: float = 1.0) -> float:
        """Seconds that `tokens` prompt tokens add to a step, `context` of their prompts' tokens already cached.

        ranks: of several copies, tokens of all over those of the fullest, which `tokens` are.
        """

    def empty(self) -> float:
        """Seconds of a step before anything is done in it; the floor of a step that decodes nothing."""


@dataclass(frozen=True, slots=True)
class PromptDelay:
    """Prompts that wait until each copy has one."""

    steps: int
    """That they wait at most."""
    decoding: int
    """Sequences that decode at least where they wait."""
    in_turn: bool
    """Whether they are dealt to the copies in turn, and not to the one with fewest requests."""


@dataclass(frozen=True, slots=True)
class ReplicaKind:
    """One instance of an engine: its step times, its pool and its limits."""

    steps: StepModel
    kv_tokens: int
    """Tokens that its cache holds."""
    max_batch: int
    """Sequences that run at once, in prefill or decode."""
    chunk: int | None = None
    """Prompt tokens of a step at most, of each copy and batch; None runs every admitted prompt whole."""
    mode: Mode = "mixed"
    """Whether prompt chunks ride on decode steps (vLLM V1, SGLang mixed chunk), or run alone and stall decode."""
    apart: int = 0
    """Tokens that each sequence holds beside its own, such as what its cross attention reads."""
    block: int = 1
    """Tokens of a cache block: what a sequence holds is rounded up to whole blocks."""
    prefix_tokens: int | None = None
    """Prompt tokens whose cache is kept for later prompts, least recently used out first; None is `kv_tokens`."""
    hit_rate: float = 0.0
    """Share of each prompt that is found cached, for traces without prefixes."""
    stages: int = 1
    """Of a pipeline that a prompt passes, each for as long as a step takes, while the next step begins in the first."""
    copies: int = 1
    """Of attention, in lockstep: each takes prompts of its own."""
    batches: int = 1
    """Of what decodes in a pipeline, which do not overtake each other: each takes prompts of its own."""
    delay: PromptDelay | None = None
    """How prompts wait for those on other copies, where they do."""
    ahead: bool = False
    """Whether the batch of a step is chosen when the step before begins: who comes later waits for one more."""
    context_grain: int = 1
    """Tokens to which the context of a prefill is rounded, so that its seconds are found again."""

    def __post_init__(self) -> None:
        counts = {"kv_tokens": self.kv_tokens, "max_batch": self.max_batch, "chunk": self.chunk, "block": self.block,
                  "context_grain": self.context_grain, "copies": self.copies, "batches": self.batches}
        for name, value in counts.items():
            if value is not None and value < 1:
                raise InputError(f"{name} of a replica must be at least 1, got {value}")
        if not 0 <= self.hit_rate <= 1 or (self.prefix_tokens or 0) < 0:
            raise InputError(f"a replica has a hit rate of 0 to 1 and prefix tokens of 0 or more, got "
                             f"{self.hit_rate:g} and {self.prefix_tokens}")

    @property
    def longest(self) -> int:
        """Cached tokens of the longest sequence that can ever run here."""
        return self.kv_tokens // self.block * self.block - self.apart


class _Memo(dict[Any, float]):
    """Seconds by argument, each asked once; a subscript that hits costs no call."""

    def __init__(self, ask: Callable[[Any], float]) -> None:
        super().__init__()
        self.ask = ask

    def __missing__(self, key: Any) -> float:  # noqa: ANN401
        seconds = float(self.ask(key))
        if not 0 <= seconds < math.inf:
            raise InputError(f"a step takes seconds of 0 or more, got {seconds} for {key}")
        self[key] = seconds
        return seconds


class StepMemo:
    """The step times of a kind, remembered by whole arguments; shared by its replicas."""

    __slots__ = ("empty", "fixed", "per_token", "prefill")

    def __init__(self, steps: StepModel) -> None:
        self.fixed, self.per_token = _Memo(steps.fixed), _Memo(steps.per_token)
        self.prefill = _Memo(lambda key: steps.prefill(*key))
        self.empty = steps.empty()
