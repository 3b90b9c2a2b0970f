"""What work is asked for."""

from __future__ import annotations

from typing import Annotated, Literal, cast, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    field_validator,
    model_validator,
)

from planner.catalog.hardware import Precision
from planner.catalog.preference import Preference, Tuned
from planner.catalog.stack import Method, Reference, Trained, Weights
from planner.errors import About
from planner.scenario.batch import GlobalBatch
from planner.scenario.pixels import PixelSize, check_images
from planner.scenario.targets import Targets
from planner.scenario.tuned import RANK, check_tuning, weights_of, with_method
from planner.scenario.unmodeled import modeled_method
from planner.units import DAY, Seconds, Tokens, parse, parse_count
from planner.units.reading import DOCUMENTS, EPOCHS
from planner.yaml_io import Frozen

Optimizer = Literal["adamw", "adamw-8bit", "adamw-4bit", "sgd-momentum", "lion", "muon", "adafactor",
                    "paged-adamw", "paged-adamw-8bit"]
Loss = Literal["plain", "chunked", "fused"]
REFERRING = ("dpo", "kto")
"""Methods that hold the policy against a frozen reference."""
EVERY = "any"
"""In place of models: every published one of the catalog."""
AUTO = "auto"
"""In place of stacks: all that people use for the method."""
TRAINABLE = ("bf16", "fp16", "fp8", "mxfp8", "fp4", "fp32", "tf32")
LONGEST = 10**8
"""Tokens of a sequence at most, ten times the longest context of a published model."""


def sequence(value: int) -> int:
    """Return a length in tokens. Raises ValueError above what any model reads."""
    if value > LONGEST:
        raise ValueError(f"a sequence has at most {LONGEST:,} tokens, far more than any model reads, got {value:,}")
    return value


def _stacks(value: object) -> object:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        return value
    stacks = tuple(dict.fromkeys(part.strip() for name in names for part in name.split(",") if part.strip()))
    if not stacks:
        raise ValueError("expected auto, or names of stacks")
    if AUTO in (name.lower() for name in stacks):
        if len(stacks) == 1:
            return (AUTO,)
        raise ValueError("auto stands for every stack in use, so that no other is named beside it")
    return stacks


Stacks = Annotated[tuple[str, ...], BeforeValidator(_stacks, json_schema_input_type=str | list[str]),
                   PlainSerializer(", ".join, return_type=str)]
SequenceLength = Annotated[Tokens, AfterValidator(sequence)]


def listed(value: object) -> object:
    """Return names separated by commas as names."""
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def _samples(value: object) -> int:
    return parse_count(value, "number of samples", "50k", DOCUMENTS)


def _whole(value: object) -> object:
    return parse_count(value, "count", "1k", DOCUMENTS) if isinstance(value, str) else value


def _epochs(value: object) -> object:
    return parse(value, EPOCHS, "number of epochs", "3") if isinstance(value, str) else value


Count = Annotated[int, BeforeValidator(_samples), Field(gt=0, le=10**12)]
Whole = Annotated[int, BeforeValidator(_whole)]
"""A number of steps, prompts or the like: 5k too."""
Passes = Annotated[float, BeforeValidator(_epochs), Field(gt=0, le=10**6)]


class Training(Frozen):
    """A training job: `tokens` in total, `global_batch` sequences per step, each of `sequence_length` tokens."""

    kind: Literal["training"] = "training"
    """Training."""
    model: str
    """Several, as a list or separated by commas, or any, ask without tokens for the largest that the hardware holds."""
    method: Annotated[Method | None, BeforeValidator(modeled_method)] = None
    """None means pretrain, or without tokens every method in turn."""
    tuning: Tuned | None = None
    """What trains: full, which is all weights, lora or qlora; none means full, or lora where lora_rank is given."""
    tokens: Annotated[Tokens, Field(le=10**16)] | None = None
    """None asks for the fewest GPUs of each kind that hold the model."""
    sequence_length: SequenceLength | None = None
    """Tokens of a sequence; none means the model's default, of fine-tuning at most 4,096."""
    global_batch: GlobalBatch | None = None
    """Sequences of a step: 2048, or 2048 sequences +- 2%; of preferences samples. None means the model's default, of
    tuning 128."""
    precision: tuple[Precision, ...] = Field(default=("bf16",), min_length=1)
    """Formats of matrix products that are searched; beside bf16, fp16 on GPUs without it. None means these two."""
    stack: Stacks = (AUTO,)
    """Training frameworks that are searched: A, or A, B; auto means those that people use for the method."""
    launchable: str | None = Field(default=None, min_length=1, max_length=60)
    """Search only layouts that `planner launch` can write for this target, or for that of each stack (auto); none means
    all of the stack.
    """
    optimizer: Optimizer = "adamw"
    """What keeps states beside the weights that train; adamw is the stack's own recipe."""
    optimizer_in_backward: bool = False
    """Whether the optimizer steps as backward makes the gradients, which are freed at once: one micro-batch a step."""
    loss: Loss | None = None
    """Kernel of the cross entropy: plain, in chunks, or fused with its projection; none means the stack's."""
    mean_length: SequenceLength | None = None
    """Mean tokens of a sample, if samples are padded to the longest of a micro-batch; none if they are packed."""
    samples: Count | None = None
    """Samples instead of tokens, each of mean_length: 50k; of preferences pairs of two such answers with their prompt.
    """
    epochs: Passes | None = None
    """Passes over the samples; none means one."""
    dataset: str | None = Field(default=None, min_length=1, max_length=1000)
    """JSONL or Parquet file of samples instead of their number: sets the mean and the longest length."""
    tokenizer: str | None = Field(default=None, min_length=1, max_length=1000)
    """Name or file of the tokenizer that counts the dataset's text; none takes its counts, or characters per token."""
    images: Annotated[float, Field(gt=0, le=10_000)] | None = None
    """Images or clips of a sample, for a model that sees; none trains it on text alone."""
    resolution: PixelSize | None = None
    """Pixels of an image or a frame."""
    frames: int | None = Field(default=None, ge=1, le=100_000)
    """Frames of each clip; none means images."""
    audio: Annotated[Seconds, Field(gt=0, le=DAY)] | None = None
    """Sound of a sample, for a model that hears."""
    samples_per_sequence: Annotated[float, Field(gt=0, le=10**6)] | None = None
    """Samples that share a sequence, where images or sound are of samples; none means one, or as packing has it."""
    trained_parts: Annotated[tuple[Trained, ...], BeforeValidator(listed)] = ()
    """What of a model that sees or hears trains: language, projector, encoder; none means the language model."""
    packing: bool | None = None
    """Whether sequences are filled with several samples; none pads them to the longest length that is known."""
    lora_rank: int | None = Field(default=None, gt=0, le=4096)
    """Rank of the adapters, which alone asks for lora; none means 16."""
    lora_targets: Targets = ()
    """What has adapters: attention, mlp, experts, embeddings, or modules by name (q_proj); none means every product."""
    reference: Reference | None = None
    """Of dpo and kto, the frozen model; none means adapters-off where there are adapters, else a copy."""
    trained_layers: int | None = Field(default=None, gt=0, le=10**6)
    """Train only this many of the last layers, and the head; needs a layout without a pipeline."""

    @field_validator("model", mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        return ", ".join(value) if isinstance(value, list) and all(isinstance(v, str) for v in value) else value

    @property
    def sees(self) -> bool:
        """Whether samples have images or sound."""
        return self.images is not None or self.audio is not None

    @property
    def models(self) -> tuple[str, ...]:
        """The names in `model`."""
        return tuple(name.strip() for name in self.model.split(",") if name.strip()) or (self.model,)

    @property
    def has_several(self) -> bool:
        """Whether the largest of several models is asked for."""
        return len(self.models) > 1 or self.model == EVERY

    @property
    def is_open(self) -> bool:
        """Whether no amount of work is given."""
        return self.tokens is None and self.samples is None and self.dataset is None

    @model_validator(mode="after")
    def _samples_have_tokens(self) -> Training:
        given = [name for name in ("tokens", "samples", "dataset") if getattr(self, name) is not None]
        if len(given) > 1:
            raise About(given[-1], f"{' and '.join(given)} are given: a job has one of tokens, samples and dataset")
        if self.dataset is not None and self.mean_length is not None:
            raise ValueError("the dataset has the lengths of its samples: leave mean_length out")
        for name, needed in (("epochs", ("tokens", "samples", "dataset", "reference")),
                             ("packing", ("samples", "dataset")), ("tokenizer", ("dataset",))):
            # what is seen or heard comes as samples, also where its tokens are counted
            seen = name == "packing" and self.sees
            if getattr(self, name) is not None and not seen and not any(getattr(self, other) for other in needed):
                raise About(name, f"{name} applies to {' or '.join(needed)}, and none is given")
        return self

    @model_validator(mode="after")
    def _seen_is_of_samples(self) -> Training:
        check_images(self, "images")
        for name in ("samples_per_sequence", "trained_parts"):
            if getattr(self, name) and not self.sees:
                raise About(name, f"{name} applies to samples with images or audio, and none are given")
        if self.sees and self.has_several:
            raise ValueError("images and audio are of one model, and several are named")
        if self.trained_parts and "language" not in self.trained_parts and self.method in ("lora", "qlora"):
            raise ValueError(f"method {self.method} adapts the language model: name language in trained_parts too, or "
                             "ask for method full")
        return self

    @model_validator(mode="after")
    def _several_are_weighed_without_tokens(self) -> Training:
        if self.has_several and not self.is_open:
            raise ValueError(f"one model is trained on tokens, not {len(self.models)}: leave tokens out to ask for the "
                             "largest that the hardware holds")
        return self

    @model_validator(mode="after")
    def _inference_has_no_tokens(self) -> Training:
        if self.method == "inference" and not self.is_open:
            raise About("method", "method inference asks what holds the model, so it takes no tokens")
        return self

    @property
    def trains(self) -> Weights:
        """What trains; where no method is given, as pre-training has it."""
        return weights_of(self) or "pretrain"

    @property
    def preference(self) -> Preference | None:
        """The method, where it trains on preferences."""
        return cast("Preference", self.method) if self.method in get_args(Preference) else None

    @property
    def held_reference(self) -> Reference | None:
        """Where the frozen reference is; none for methods without one."""
        if self.method not in REFERRING:
            return None
        return self.reference or ("copy" if self.trains == "full" else "adapters-off")

    @property
    def rank(self) -> int:
        """Rank of the adapters, where there are some."""
        return self.lora_rank or RANK

    @model_validator(mode="before")
    @classmethod
    def _tuning_names_the_method(cls, data: object) -> object:
        return with_method(data)

    @model_validator(mode="after")
    def _adapters_are_of_their_methods(self) -> Training:
        check_tuning(self)
        if self.trained_layers is not None and self.trains not in ("pretrain", "full"):
            raise About("trained_layers", f"trained_layers is for methods pretrain and full; {self.trains} freezes "
                        "every layer")
        return self

    @model_validator(mode="after")
    def _references_are_of_their_methods(self) -> Training:
        if self.reference is not None and self.method not in REFERRING:
            raise About("reference", f"reference applies to methods {' and '.join(REFERRING)}, but method "
                        f"{self.method or 'pretrain'} has none")
        if self.reference == "adapters-off" and self.trains == "full":
            raise About("reference", "reference adapters-off needs adapters, and tuning full trains none: write copy "
                        "or precomputed, or lora or qlora as the tuning")
        if self.preference is not None and self.packing:
            raise ValueError(f"packing applies to supervised tuning: method {self.method} pads the answers of a batch "
                             "to the longest")
        return self

    @field_validator("precision")
    @classmethod
    def _trainable(cls, value: tuple[Precision, ...]) -> tuple[Precision, ...]:
        for precision in value:
            if precision not in TRAINABLE:
                raise ValueError(f"{precision!r} is not a training precision here: {', '.join(TRAINABLE)}")
        return value
