"""What is asked of a diffusion model: adapters or all weights trained on images or clips."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, Field, model_validator

from planner.catalog.diffusion_law import Base
from planner.errors import About
from planner.scenario.job import JobScenario
from planner.scenario.passes import check_amount, steps_of
from planner.scenario.pixels import PixelSize
from planner.scenario.targets import GROUPS, Targets
from planner.scenario.unmodeled import modeled_method
from planner.scenario.workload import Count, Passes, listed
from planner.units import DAY, Seconds
from planner.yaml_io import Frozen

DiffusionMethod = Literal["lora", "lokr", "full"]
Latents = Literal["cached", "online"]
DiffusionOptimizer = Literal["adamw", "adamw-8bit", "lion", "prodigy", "sgd-momentum", "adafactor"]
ADAPTER_KEYS = {"lora_rank": ("lora",), "lokr_factor": ("lokr",), "lora_targets": ("lora", "lokr")}
"""Keys of adapters -> the methods that have them."""
ATTENTION, MLP = {"q", "k", "v", "o"}, {*GROUPS["mlp"]}
"""Places of adapters that blocks of a denoiser have."""


def _modeled(value: object) -> object:
    return value if value in get_args(DiffusionMethod) else modeled_method(value)


class DiffusionTraining(Frozen):
    """Training a diffusion model on `batch` images or clips a step."""

    kind: Literal["diffusion"] = "diffusion"
    """Diffusion."""
    model: str
    """A diffusion model of the catalog."""
    method: Annotated[DiffusionMethod, BeforeValidator(_modeled)] = "lora"
    """Adapters beside a frozen denoiser, of low rank or Kronecker products (LyCORIS), or all of its weights."""
    resolution: PixelSize | None = None
    """Pixels of an image or a frame; none means what the model was made for."""
    frames: int | None = Field(default=None, ge=1, le=10_000)
    """Frames of a clip; none means what the model was made for."""
    audio: Annotated[Seconds, Field(gt=0, le=DAY)] | None = None
    """Length of sound, of a model that makes it; none means what the model was made for."""
    batch: int = Field(default=1, ge=1, le=10**6)
    """Images or clips of a step, on all GPUs together."""
    steps: int | None = Field(default=None, ge=1, le=10**9)
    """Steps of the whole job, however many samples there are; none means passes over the samples."""
    samples: Count | None = None
    """Images or clips to train on."""
    images: Count | None = None
    """The same in another word."""
    epochs: Passes | None = None
    """Passes over the samples; none means one."""
    lora_rank: int = Field(default=16, gt=0, le=4096)
    """Rank of the adapters on every matrix that has them."""
    lokr_factor: int = Field(default=16, gt=1, le=4096)
    """Side of the smaller matrix of Kronecker adapters, of which the other is so much smaller than the whole."""
    lora_targets: Targets = ()
    """What has adapters: attention, or attention and mlp; none means attention."""
    quantization: Annotated[tuple[Base, ...], BeforeValidator(listed)] = Field(default=("bf16",), min_length=1)
    """Formats of the frozen denoiser that are searched."""
    optimizer: DiffusionOptimizer = "adamw"
    """What keeps states beside the weights that train."""
    latents: Latents = "cached"
    """Whether latents and embeddings are computed before training, or online by encoders beside the denoiser."""
    ema: bool = False
    """Whether a moving average of the weights that train is kept."""

    @model_validator(mode="before")
    @classmethod
    def _images_are_samples(cls, data: object) -> object:
        if not isinstance(data, dict) or data.get("images") is None:
            return data
        if data.get("samples") is not None:
            raise ValueError("images and samples mean the same: give one of them")
        return {**data, "images": None, "samples": data["images"]}

    @model_validator(mode="after")
    def _one_amount(self) -> DiffusionTraining:
        check_amount(self)
        if self.method == "full" and set(self.quantization) != {"bf16"}:
            raise About("quantization", "quantization is of a frozen base, and method full trains all weights: leave "
                        "it out, or ask for method lora")
        for key, methods in ADAPTER_KEYS.items():
            # an answer that is read back states defaults too
            if self.method not in methods and getattr(self, key) != type(self).model_fields[key].default:
                raise About(key, f"{key} applies to method {' or '.join(methods)}, and this is method {self.method}")
        places = {*self.lora_targets}
        if places and not (places >= ATTENTION and (places >= MLP or not MLP & places)):
            raise About("lora_targets", "of a diffusion model: expected attention, or attention and mlp")
        return self

    @property
    def adapts_mlp(self) -> bool:
        """Whether the feed-forward has adapters beside attention."""
        return {*self.lora_targets} >= MLP

    @property
    def total_steps(self) -> int | None:
        """Steps of the whole job; none where no amount of work is given."""
        return steps_of(self, self.batch)


class DiffusionScenario(JobScenario):
    """The question of one diffusion model."""

    workload: DiffusionTraining
    """What is trained."""


