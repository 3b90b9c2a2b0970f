"""How fast the steps of an inference engine are, by release: what it adds to, and reaches of, the hardware's rates."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from planner.catalog.ranges import Factor, Few, Passes, Share, Width
from planner.catalog.sourced import Sourced
from planner.units import Bytes, Seconds
from planner.yaml_io import Frozen


class ServingLaw(Sourced):
    """What serving adds to the kernels of training, the same for all engines."""

    stream: dict[str, Share]
    """Share of the datasheet's memory bandwidth that reading weights reaches, by GPU architecture."""
    cache: dict[str, Share]
    """The same of reading keys and values."""
    blend: Annotated[float, Field(gt=1, le=1000)]
    """Exponent of the norm that joins a product's compute and memory time: large takes the larger, 1 adds them."""
    tile: dict[str, Width]
    """Rows of the smallest tile of a product, by GPU architecture: those of its matrix instruction."""
    expert_rows: Width
    """The same of a product of experts."""
    expanded: float = Field(ge=1e-4, le=1)
    """Share of their rate that products keep whose weights are expanded to 16 bits on the way."""
    narrow: dict[str, Factor]
    """Time of dense products over what the kernels' law says, by the format that they compute in; 1 for others."""
    narrow_experts: dict[str, Factor]
    """The same of products of routed experts."""
    latent: float = Field(ge=1e-4, le=1)
    """Share of the 16-bit peak that decoding over latent vectors (MLA) reaches."""
    latent_gaps: Annotated[float, Field(ge=1, le=1e4)]
    """Gaps between kernels in a layer of latent attention over those in another: it has more of them."""
    indexer_gaps: Annotated[float, Field(ge=1, le=1e4)]
    """The same where an indexer chooses what to attend to, beside those of latent attention."""
    alike: float = Field(ge=1e-4, le=1)
    """Exponent of the rows of a step in the number of experts they choose: tokens are alike, and choose alike."""
    imbalance: Annotated[float, Field(ge=1, le=1e4)]
    """Work of the busiest rank over the mean under expert parallelism, of rows so many that chance evens out."""
    one_shot: float = Field(ge=1e-4, le=1)
    """Share of a scale-up link that a kernel of one-shot or two-shot all-reduce reaches."""
    one_shot_bytes: Bytes
    """Largest message that such a kernel takes."""
    expert_passes: float = Field(ge=0, le=1e4)
    """Times the rows of routed experts pass through memory, read and written, where an engine states no other."""
    handover: Seconds
    """What sending a request from a prefill worker to a decode worker takes beside its cache."""
    handover_burst: Passes
    """Share of the other clients whose prompts are ahead in a closed loop over workers of two kinds."""
    serial: float = Field(ge=0, le=1)
    """Share of a request's time on the host in which those that came with it wait."""
    asks: Few
    """Requests of each client of a benchmark's closed loop, the first of which all come together."""
    pipeline: Annotated[float, Field(ge=0, le=10)]
    """Share of a step lost to uneven micro-batches for each doubling of the stages."""
    tuned: float = Field(ge=1e-4, le=1)
    """Time of a step over the usual one where kernels, settings and builds are chosen for one benchmark."""
    startup: Seconds
    """From renting a node to the first answer of a replica on it, where a service does not say."""
    adapted: Seconds
    """What both small products of a LoRA adapter take beside one of the model's, whatever their size."""
    elementwise: Passes
    """Times a token's residual passes through memory in a layer."""


class ServiceLevel(Frozen):
    """Limits of latency that a benchmark sets for a model, and how uneven the lengths of its requests are."""

    model: str
    scenario: Literal["server", "interactive"]
    ttft: Seconds
    tpot: Seconds
    quantile: float = Field(ge=1e-4, lt=1)
    """Share of requests that stay within them."""
    input_cv: Annotated[float, Field(ge=0, le=100)]
    output_cv: Annotated[float, Field(ge=0, le=100)]


class ServiceLevels(Sourced):
    """Limits by model and scenario."""

    levels: tuple[ServiceLevel, ...]

    def of(self, model: str, scenario: str) -> ServiceLevel | None:
        """Return the limits of a model in a scenario, if there are any."""
        matching = (level for level in self.levels if level.model == model and level.scenario == scenario)
        return next(matching, None)


STEP = ("products", "attention", "experts", "cache", "layer", "mixture", "step", "sequence", "prompt_step", "exchange")
"""Fields of a release that are times of parts of a step."""


class EngineSpeed(Frozen):
    """Steps of an engine from one version on, until the next entry."""

    version: str = Field(pattern=r"^\d+(\.\d+)*$")
    architectures: tuple[str, ...] = ()
    """GPU architectures that it is for, where not for all."""
    products: Factor
    """Time of products over what the kernels' law says."""
    expanded_rows: Width = 16
    """Rows of the smallest tile, on any architecture, of a product whose weights are expanded to 16 bits on the way."""
    saturation: Annotated[float, Field(ge=0, le=1e4)] = 1.0
    """Rows of tiles that a large product leaves empty, over what the kernels' law says."""
    attention: Factor
    """Time of attention over prompts, the same way."""
    experts: Factor
    """Time of the products of routed experts, the same way."""
    stream: Factor
    """Time of reading weights over the architecture's."""
    cache: Factor
    """Time of reading the cache over the architecture's."""
    grouped: float = Field(default=0.0, ge=0, le=1)
    """How query heads that share keys and values share reading them: 0 once for all, 1 once for each, by exponent."""
    layer: Seconds
    """Of each layer: gaps between kernels."""
    mixture: Seconds
    """More in a layer of routed experts."""
    step: Seconds
    """Of each step, on the host."""
    sequence: Seconds
    """Of each step for each sequence in it."""
    prompt_step: Seconds
    """More in a step that has prompt tokens."""
    request: Seconds
    """Of each request before its first token: parsing, tokens, scheduling."""
    exchange: Seconds
    """Start of an all-reduce inside a scale-up domain."""
    chunk: Width
    """Prompt tokens of a step."""
    sequences: Width
    """Sequences of a step."""
    prefill_first: bool = False
    """Whether prompts run in steps of their own, before sequences decode on."""
    burst: Passes
    """Share of the other clients whose prompts are ahead in a closed loop."""
    expert_passes: Passes | None = None
    """Times the rows of routed experts pass through memory; of all releases of an engine alike."""
    latent: Factor = 1.0
    """Time of a step of a model of latent attention over what its parts take: before an engine was made for them."""

    def quicker(self, share: float) -> EngineSpeed:
        """Return the engine with every part of a step at that share of its time."""
        return self.model_copy(update={name: getattr(self, name) * share for name in STEP})

    @property
    def key(self) -> str:
        """The version, and the architectures where it is not for all: what tells it from the others."""
        return " ".join((self.version, *self.architectures))

    @property
    def order(self) -> tuple[int, ...]:
        """The version as numbers."""
        return tuple(map(int, self.version.split(".")))


class Early(Frozen):
    """Versions of an engine that ran models of latent attention before it was made for them."""

    before: str = Field(pattern=r"^\d+(\.\d+)*$")
    times: Factor
    """Time of their steps over what the parts take."""
    source: str


class Speeds(Sourced):
    """One engine's speeds; `releases` rise by version."""

    early: Early | None = None
    expert_passes: Passes | None = None
    """Times the rows of routed experts pass through memory, where not as often as the law says."""
    releases: tuple[EngineSpeed, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _releases_rise(self) -> Speeds:
        kinds = [(release.order, release.architectures) for release in self.releases]
        if kinds != sorted(set(kinds)):
            raise ValueError("releases must rise by version, then by architectures, without repeats")
        if self.releases[0].architectures:
            raise ValueError("the first release must hold for all architectures")
        return self

    def release(self, version: str | None, architecture: str) -> EngineSpeed:
        """Return the entry that holds for a version on a GPU architecture.

        The newest without a version, the oldest for what is older; of entries of one version that for the architecture
        before the general one.
        """
        asked = tuple(int(part) for part in version.split(".") if part.isdigit()) if version else None
        known = [release for release in self.releases if (asked is None or release.order <= asked)
                 and (not release.architectures or architecture in release.architectures)]
        speed = max(known, key=lambda known_speed: (known_speed.order, bool(known_speed.architectures)),
                    default=self.releases[0])
        speed = speed.model_copy(update={"expert_passes": self.expert_passes})
        early = self.early
        if early is None or asked is None or asked >= tuple(map(int, early.before.split("."))):
            return speed
        return speed.model_copy(update={"latent": early.times})
