"""What a serving plan delivers: rates, latencies at percentiles as computed, and as a replay found them."""

from __future__ import annotations

import operator
from typing import Literal

from pydantic import Field

from planner.units import show_seconds
from planner.yaml_io import Frozen, absent


def _is_whole(role: str) -> bool:
    return role == "whole"


class Asked(Frozen):
    """A latency where its target is set, beside the target."""

    at: str
    """p99, say, or mean."""
    seconds: float
    """The latency there."""
    target_seconds: float
    """What it may be."""

    def beside(self, name: str) -> str:
        """Write the latency beside its target."""
        return f"{name} {show_seconds(self.seconds)} at {self.at}, target {show_seconds(self.target_seconds)}"


def name_of(share: float | None) -> str:
    """Return what a target holds at: p95 of a share of the requests, the mean of none."""
    return "mean" if share is None else f"p{100 * share:.10g}"


class Percentiles(Frozen):
    """Median and 95th percentile over requests, in seconds."""

    p50: float
    """Median, in seconds."""
    p95: float
    """95th percentile, in seconds."""
    asked: Asked | None = Field(default=None, exclude_if=absent)
    """At the percentile of the latency target; the key is left out where none is set."""


class Autoscaled(Frozen):
    """GPUs that an ideal autoscaler has at work or starting, which knows the load to come; no real one has fewer."""

    startup_seconds: float = Field(gt=0)
    """From the start of a replica to its first answer, paid for."""
    peak_gpus: int = Field(ge=0)
    """At most; those of the plan's fleet are fixed."""
    mean_gpus: float = Field(ge=0)
    """On average over the trace or the day, with what starting takes."""
    starts: int = Field(ge=0)
    """Replicas started, of a trace after its beginning."""
    share_within_level: float | None = Field(default=None, ge=0, le=1, exclude_if=absent)
    """Share of the requests of a trace within every target, by replay; the key is left out where nothing is saved."""


class Replayed(Frozen):
    """Results of an event-by-event replay of requests on the plan's replicas."""

    requests: int = Field(ge=0)
    """Number of requests replayed."""
    rejected: int = Field(default=0, ge=0)
    """Requests that no replica could ever hold."""
    preempted: int = Field(default=0, ge=0)
    """Times that a sequence gave up its cache for older ones, and began again."""
    ttft_seconds: Percentiles
    """Time to the first token."""
    tpot_seconds: Percentiles
    """Time per output token after the first."""
    e2e_seconds: Percentiles | None = Field(default=None, exclude_if=absent)
    """Time to the last token, where that has a target; elsewhere the key is left out."""
    output_tokens_per_second: float = Field(ge=0)
    """Total over all replicas."""
    share_within_level: float = Field(ge=0, le=1)
    """Share of the requests that met every latency target."""
    share_within_level_of_day: float | None = Field(default=None, ge=0, le=1, exclude_if=absent)
    """The same of all hours of a day: all else is of the busiest. The key is left out where every hour is alike."""
    busy_share: float = Field(ge=0, le=1)
    """Share of the time in which a step ran, averaged over the replicas."""
    autoscaled: Autoscaled | None = Field(default=None, exclude_if=absent)
    """What an ideal autoscaler needs, where the time to start is given; elsewhere the key is left out."""


class Adapters(Frozen):
    """LoRA adapters that each replica holds and serves at once."""

    count: int = Field(gt=0)
    """How many."""
    rank: int = Field(gt=0)
    """Of the largest, for which the engine allocates."""
    bytes_per_gpu: int = Field(ge=0)
    """What they take of a GPU of the first stage, counted with the weights."""


class Made(Frozen):
    """Images or clips that replicas make, and how: of a service or a batch of a diffusion model."""

    media: Literal["image", "video", "audio"]
    """What is made: images, clips, or sound."""
    resolution: str
    """Width and height in pixels: 1024x1024; of sound its length: 240 s."""
    frames: int = Field(gt=0)
    """Of a clip; 1 of an image and of sound."""
    steps: int = Field(gt=0)
    """Of denoising."""
    passes: int = Field(gt=0)
    """Of the denoiser for a step: two with guidance by a second prompt."""
    batch: int = Field(gt=0)
    """Images or clips of a call at most."""
    offload: Literal["none", "model", "sequential"]
    """What waits on the host: nothing, each part while another is at work, or every block."""
    vae: Literal["whole", "tiled"]
    """Whether the autoencoder decodes all images of a call at once, or one tile of one."""
    cfg: int = Field(gt=0)
    """GPUs that share out the passes of guidance."""
    ulysses: int = Field(gt=0)
    """GPUs that exchange tokens for heads."""
    ring: int = Field(gt=0)
    """GPUs that pass keys and values round."""
    pipefusion: int = Field(gt=0)
    """Stages of blocks that patches pass."""
    call_seconds: float = Field(gt=0)
    """Of a call for a whole batch."""
    seconds_each: float = Field(gt=0)
    """Of one image or clip, of a whole batch: call_seconds over batch."""
    interval90_seconds_each: tuple[float, float]
    """The same, 5% and 95% quantile of comparable evidence."""
    seconds: dict[str, float]
    """Of a call, by what takes them: encode, denoise, exchange, offload, decode, other."""
    bytes: dict[str, int]
    """Of one GPU at the median while each part is at work: encode, denoise, decode."""

    @property
    def noun(self) -> str:
        """What is made."""
        return "images" if self.media == "image" else "clips"


class ServingFigures(Frozen):
    """What a serving plan delivers within its latency targets."""

    replicas: int = Field(gt=0)
    """Copies of the layout, each serving requests."""
    requests_per_second: float = Field(ge=0)
    """Total over all replicas."""
    ttft_seconds: Percentiles
    """Time to the first token."""
    tpot_seconds: Percentiles
    """Time per output token after the first."""
    e2e_seconds: Percentiles | None = Field(default=None, exclude_if=absent)
    """Time to the last token, where that has a target; elsewhere the key is left out."""
    users: float | None = Field(default=None, ge=0, exclude_if=absent)
    """Of a closed loop, over all replicas; the key is left out in an open one."""
    load_share: float | None = Field(default=None, ge=0, exclude_if=absent)
    """The load over the most that the replicas hold within the latency targets, by formula and by what replays showed;
    left out of estimates."""
    overloaded: bool = Field(default=False, exclude_if=operator.not_)
    """Whether more is asked for than is answered, so that the queue and the wait for a first token grow without end:
    `ttft_seconds` is then that of a request which finds no queue. The key is left out elsewhere."""
    documents: int | None = Field(default=None, gt=0, exclude_if=absent)
    """Of a batch, which ends when all are answered; the key is left out where requests keep coming."""
    output_tokens_per_second_per_gpu: float = Field(ge=0)
    """At the planned load."""
    max_batch: int = Field(gt=0)
    """Sequences a replica decodes at once."""
    kv_tokens: int = Field(ge=0)
    """Tokens the key-value cache of a replica holds."""
    role: Literal["whole", "prefill", "decode"] = Field(default="whole", exclude_if=_is_whole)
    """Which part of a request the replicas run; the key is left out if they run all of it."""
    prompts: tuple[int, int | None] | None = Field(default=None, exclude_if=absent)
    """Tokens of the prompts that the replicas answer, from and up to and with (none: no end), where requests are split
    by length; the key is left out where they answer all."""
    part_of_nodes: float | None = Field(default=None, ge=0, le=1, exclude_if=absent)
    """Of its nodes, what the assignment pays for, by GPUs: `usd_per_node_hour` is that part of the price, replicas of
    other assignments run there too and pay the rest. The key is left out where nobody else does."""
    memory_fraction: float | None = Field(default=None, exclude_if=absent)
    """Of memory that the engine must be given; the key is left out where its default does."""
    max_batched_tokens: int | None = Field(default=None, gt=0, exclude_if=absent)
    """Of a step, the prefill chunk, as the engine must be told; left out likewise."""
    prefill_delay: int | None = Field(default=None, gt=0, exclude_if=absent)
    """Steps that a prompt waits at most until all copies of attention have one, as the engine must be told; left out
    where none waits."""
    max_sequences: int | None = Field(default=None, gt=0, exclude_if=absent)
    """Of a step, as the engine must be told; left out likewise."""
    max_model_len: int | None = Field(default=None, gt=0, exclude_if=absent)
    """Tokens of the longest request that they accept; left out in plans of before."""
    kv_cache: str | None = Field(default=None, exclude_if=absent)
    """Format of keys and values, where it is not the engine's default."""
    drafts: int | None = Field(default=None, gt=0, exclude_if=absent)
    """Tokens drafted ahead in each step; left out where none are."""
    adapters: Adapters | None = Field(default=None, exclude_if=absent)
    """The LoRA adapters served beside the model; the key is left out where there are none."""
    nodes_by_hour: tuple[int, ...] | None = Field(default=None, exclude_if=absent)
    """Nodes in each hour of the day; the key is left out where they are as many at every hour."""
    replicas_by_hour: tuple[int, ...] | None = Field(default=None, exclude_if=absent)
    """Replicas in each hour of the day; left out likewise."""
    made: Made | None = Field(default=None, exclude_if=absent)
    """Of a diffusion model, whose images or clips are the requests; elsewhere the key is left out."""
    replayed: Replayed | None = Field(default=None, exclude_if=absent)
    """Of all replicas of the workload together that answer the same prompts; elsewhere the key is left out."""

    @property
    def noun(self) -> str:
        """What is asked for and answered: requests, images or clips."""
        return "requests" if self.made is None else self.made.noun

    @property
    def each(self) -> str:
        """What a batch is of: documents, images or clips."""
        return "documents" if self.made is None else self.made.noun

    @property
    def decodes(self) -> bool:
        """Whether its replicas write tokens after the first."""
        return self.role != "prefill" and self.writes

    @property
    def writes(self) -> bool:
        """Whether its requests have answers of several tokens; those of an embedder have none."""
        return self.tpot_seconds.p50 > 0 and (self.role == "prefill" or self.output_tokens_per_second_per_gpu > 0)

    def rate_at(self, hour: int) -> float:
        """Return the requests/s that its replicas answer in an hour of the day."""
        there = self.replicas if self.replicas_by_hour is None else self.replicas_by_hour[hour]
        return self.requests_per_second / self.replicas * there


def above_targets(seen: Replayed | ServingFigures) -> list[tuple[str, Asked]]:
    """Return the latencies that are above their targets, by name, replayed or computed."""
    latencies = ("TTFT", seen.ttft_seconds), ("TPOT", seen.tpot_seconds), ("E2E", seen.e2e_seconds)
    return [(name, latency.asked) for name, latency in latencies
            if latency is not None and latency.asked is not None
            and latency.asked.seconds > latency.asked.target_seconds]
