"""What a user chooses over a stack's own training recipe: bytes of optimizers, losses, frozen bases and adapters."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field

from planner.catalog.preference import Preference
from planner.catalog.ranges import Held
from planner.catalog.sourced import Sourced
from planner.units import Seconds
from planner.yaml_io import Frozen


class TrainedBytes(Frozen):
    """Bytes of each parameter that trains beside a frozen base."""

    weight: float = Field(ge=1e-4, le=64)
    gradient: Held
    moments: Held


class UsualTuning(Frozen):
    """What a fine-tuning run takes unless it is told."""

    example: str
    """Whose recipe it is, as a reason says it."""
    sequence_length: int = Field(gt=0, le=10**8)
    """Tokens, of a model that reads as many."""
    global_batch: int = Field(gt=0, le=10**6)
    """Sequences."""
    spread: float = Field(ge=0, le=4)
    """Standard deviation of the lengths of samples over their mean, by which several in a micro-batch are padded."""


class Optimal(Frozen):
    """How many tokens train a model with the least compute for what it then can."""

    example: str
    """Whose rule it is, as a reason says it."""
    tokens: float = Field(ge=1, le=10**6)
    """For each parameter."""


class UsualSpeech(Frozen):
    """How long requests of sound that is written down are, in tokens."""

    example: str = Field(min_length=3)
    """What they are, as a reason says it."""
    input: int = Field(gt=0, le=10**7)
    """What is asked ahead of the answer."""
    words: Annotated[float, Field(gt=0, le=100)]
    """Tokens that a second of speech is."""

    def tokens(self, seconds: float) -> int:
        """Return the tokens of so many seconds, with what is asked ahead of them."""
        return self.input + math.ceil(self.words * seconds)


class UsualRequests(Frozen):
    """How long requests are unless a service is told, in tokens."""

    example: str
    """Whose requests they are, as a reason says it."""
    input: int = Field(gt=0, le=10**7)
    output: int = Field(gt=0, le=10**7)
    pace: Seconds
    """A token of an answer that is as fast as people read."""
    daily: Annotated[int, Field(gt=0, le=10**4)]
    """Requests that one who uses a service makes, where only those who do so in a time are counted."""
    known: Annotated[float, Field(ge=0, lt=1)]
    """Share of a prompt that fills its context which the turn before has left in the cache."""


class UsualDrafts(Frozen):
    """What speculative decoding drafts and has accepted, unless a service is told."""

    example: str
    """Whose drafts they are, as a reason says it."""
    tokens: int = Field(gt=0, le=64)
    """Drafted per step."""
    acceptance: Annotated[float, Field(ge=0, le=1)]
    """Share that the model accepts."""


class UsualSteps(Frozen):
    """How many steps a job has unless it is told."""

    example: str
    """Whose job it is, as a reason says it."""
    steps: int = Field(gt=0, le=10**9)


class UsualWhole(Frozen):
    """How long whole runs are at most, unless a question is told a deadline."""

    example: str
    """Whose runs they are, as a reason says it."""
    longest: Seconds


class UsualMade(Frozen):
    """How many images or clips are made unless a question is told."""

    example: str
    """What the number is, as a reason says it."""
    samples: int = Field(gt=0, le=10**9)
    patience: Seconds
    """Seconds for which one is waited for."""


class PreferenceMethod(Frozen):
    """What a method that trains on preferences works through for one sample."""

    sequences: int = Field(ge=1, le=8)
    """That train: both answers of a pair, or one that is labeled."""
    policy_forwards: float = Field(default=0, ge=0, le=8)
    """Further forward passes of the model that trains, each over as many sequences: the KL estimate of KTO."""
    reference_forwards: float = Field(default=0, ge=0, le=8)
    """Forward passes of the frozen reference, likewise; 0 where there is none."""
    scores: bool = False
    """Whether the head has one value in place of the vocabulary."""


class PreferenceRecipes(Frozen):
    """Of training on preferences: its methods, and what a run takes unless it is told."""

    methods: dict[Preference, PreferenceMethod]
    usual: UsualTuning
    """Its batch is of samples."""
    longer: float = Field(ge=1, le=4)
    """Mean length of the longer answer of a pair, to which the other is padded, over that of both."""
    reference_logit: Held
    """Per logit: what those of the reference add to the peak of the policy's."""


class Text(Frozen):
    """What text is in tokens where nobody counts them."""

    characters_per_token: float = Field(ge=0.1, le=100)
    tokens_per_word: float = Field(ge=0.1, le=100)
    words_per_page: float = Field(ge=1, le=10**5)


class Recipes(Sourced):
    """Bytes by the names of optimizers, losses and quantized bases."""

    optimizers: dict[str, Held]
    """Per parameter, of an optimizer's states; paged ones leave the GPU under pressure. AdamW is the stack's own."""
    least_gradient: Held
    """Per parameter, where every gradient is applied and freed as backward makes it: the matrix at hand."""
    losses: dict[Literal["plain", "chunked", "fused"], Held]
    """Per logit of a plain loss and of one in chunks, per hidden element of one fused with its projection."""
    bases: dict[str, Held]
    """Per frozen weight, by quantization."""
    cast_bases: tuple[str, ...]
    """Quantizations beside which PEFT casts what is not quantized to 32 bits."""
    qlora: str
    """The quantization that QLoRA has unless a row says otherwise."""
    adapter: TrainedBytes
    table: TrainedBytes
    """Of an embedding or head that trains beside adapters."""
    tuning: UsualTuning
    encoding: UsualTuning
    """The same of what answers with vectors or scores."""
    preference: PreferenceRecipes
    optimal: Optimal
    requests: UsualRequests
    speech: UsualSpeech
    drafts: UsualDrafts
    outlying: Annotated[float, Field(gt=0, lt=1)]
    """Share of the median on-demand price of a GPU below which a price is pointed out."""
    at_once: int = Field(gt=0, le=10**6)
    """Nodes from which it is not taken for granted that a provider has them on demand."""
    pictures: UsualSteps
    """Of training a diffusion model."""
    made: UsualMade
    whole: UsualWhole
    text: Text
    currencies: dict[str, Annotated[float, Field(ge=1e-6, le=1e3)]]
    """US dollars for one of each currency that budgets are given in."""

    def sequences(self, method: Preference | None) -> int:
        """Return the sequences that a sample trains on by a method of preferences; one where it is none."""
        return 1 if method is None else self.preference.methods[method].sequences
