"""What is asked of a diffusion model that is run: images or clips at a rate within a latency, or a batch of them."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from planner.catalog.generation_law import StepCache, Stored
from planner.errors import About
from planner.scenario.diffusion import DiffusionTraining
from planner.scenario.pixels import PixelSize
from planner.scenario.serving import Serving
from planner.scenario.words import method_named
from planner.scenario.workload import Count, listed


class Generation(Serving):
    """Images or clips at a `rate`, a batch of `samples`, or as many as go (neither)."""

    kind: Literal["generation"] = "generation"  # type: ignore[assignment]
    """Running a diffusion model."""
    method: Literal["inference"] = "inference"
    """Inference."""
    model: str
    """A diffusion model of the catalog."""
    samples: Count | None = None
    """Images or clips of a batch, all asked for at the start: no latency target, and a deadline holds."""
    resolution: PixelSize | None = None
    """Pixels of an image or a frame; none means what the model was made for."""
    frames: int | None = Field(default=None, ge=1, le=10_000)
    """Frames of a clip; none means what the model was made for."""
    steps: int | None = Field(default=None, ge=1, le=10_000)
    """Of denoising; none means those of the model's pipeline."""
    guidance: float | None = Field(default=None, ge=0, le=100)
    """Scale of guidance, up to 1 is none; none means that of the model's pipeline."""
    batch: int | None = Field(default=None, ge=1, le=1024)
    """Images or clips of one call at most; none searches for it."""
    quantization: Annotated[tuple[Stored, ...], BeforeValidator(listed)] | None = Field(  # type: ignore[assignment]
        default=None, min_length=1)
    """Formats of the denoiser that are searched; none means 16 bits."""
    compile: bool = False
    """Whether the denoiser is compiled (torch.compile)."""
    step_cache: StepCache = "none"
    """What leaves out passes of steps that change little; it changes what is made."""

    FOREIGN: ClassVar[frozenset[str]] = frozenset((
        "concurrency", "documents", "trace", "input", "output", "ttft", "tpot", "kv_cache", "engine",
        "engine_version", "prefix_hits", "speculative", "max_model_len", "adapters", "lora_rank", "length_classes",
        "disaggregated"))
    """Keys of services of language models, which this has not."""

    @model_serializer(mode="wrap")
    def _own_keys(self, handler: SerializerFunctionWrapHandler) -> dict[str, object]:
        return {key: value for key, value in handler(self).items() if key not in self.FOREIGN}

    @property
    def ends(self) -> int | None:
        """Images or clips of a batch; none where they keep being asked for."""
        return self.samples

    @model_validator(mode="after")
    def _one_kind_of_load(self) -> Generation:
        if self.rate is not None and self.samples is not None:
            raise About("samples", "rate and samples are given: images or clips are asked for at a rate, or as a "
                        "batch")
        if self.samples is not None:
            for key in ("users", "think", "arrivals", "day", "e2e", "percentile", "headroom", "spare_replicas",
                        "spare_nodes"):
                if getattr(self, key) != type(self).model_fields[key].default:
                    raise About(key, f"{key} does nothing to a batch of samples, which has no latency and no arrivals")
        for name in ("arrivals", "day", "headroom"):
            if getattr(self, name) and self.rate is None and self.users is None:
                raise About(name, f"{name} applies to a rate: give rate, such as 2 images/s")
        return self

    @model_validator(mode="after")
    def _people_ask_at_a_rate(self) -> Generation:
        if self.users is not None and self.rate is not None:
            raise About("users", "rate and users are given: images or clips are asked for at a rate, or by people who "
                        "each wait for theirs")
        if self.users is not None and not self.think:
            raise About("users", "how often people ask for images is not known: give think, such as 30s from an image "
                        "to the next question, or rate, such as 2 images/s")
        if self.think is not None and self.users is None:
            raise About("think", "think applies to users, but none are given")
        return self

    @property
    def asked_rate(self) -> float | None:
        """Images or clips a second; of people as many as they ask for if each image came at once."""
        return self.users / self.think if self.users is not None and self.think else self.rate

    @model_validator(mode="after")
    def _lengths_are_known(self) -> Generation:
        return self


ONLY_GENERATED = (set(Generation.model_fields) - set(DiffusionTraining.model_fields)
                  - Generation.FOREIGN - {"kind", "name"})
"""Keys that say that a diffusion model is run, not trained."""
ONLY_TRAINED = set(DiffusionTraining.model_fields) - set(Generation.model_fields) | {"lora_rank", "tuning"}
"""Keys that say that it is trained."""
FEW_STEPS = 60
"""Steps in which an image is made at most, where nothing says that they are of training."""
_LOADS = {"concurrency", "users", "think", "documents", "trace", "ttft", "tpot", "engine"}
"""Keys of a service: they do not apply to images or clips, and yet say that these are to be made."""


def is_generation(work: dict[object, object]) -> bool:
    """Say whether a diffusion model is run, by the keys of its workload: by the method, or what only one of both has.

    What counts images or clips, and trains nothing, asks for these; so does what says of no training at all. Few steps
    are those of an image, more are steps of training.
    """
    method = work.get("method")
    if method is not None:
        return method_named(method) == "inference"
    stated = {"samples" if key == "images" else key for key, value in work.items() if value is not None}
    if str(work.get("steps")).isdecimal() and int(str(work["steps"])) <= FEW_STEPS:
        stated -= {"steps", "batch"}
    if stated & (ONLY_GENERATED | _LOADS):
        return True
    return not stated & (ONLY_TRAINED | {"batch", "steps"}) or (
        not stated & ONLY_TRAINED and "samples" in stated and "batch" not in stated)
