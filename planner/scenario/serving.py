"""What service is asked for: a model, the load, and the latency targets that it must meet."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from planner.errors import About
from planner.scenario.demand import USUAL_PERCENTILE, Gaps, Latency, Level, Percentile, Rate, Share, TokenLatency
from planner.scenario.lengths import Answers, Lengths
from planner.scenario.pixels import PixelSize, check_images
from planner.scenario.speculative import Speculative
from planner.scenario.unmodeled import modeled_format
from planner.units import DAY, Seconds, Tokens, parse_count
from planner.units.reading import DOCUMENTS, USERS
from planner.yaml_io import Frozen

Gguf = Literal["q8_0", "q6_k", "q5_k_m", "q5_k_s", "q5_0", "q5_1", "q4_k_m", "q4_k_s", "q4_0", "q4_1", "iq4_xs",
               "iq4_nl", "q3_k_l", "q3_k_m", "q3_k_s", "q2_k"]
"""Kinds of llama.cpp."""
Quantization = Literal["bf16", "fp8", "int8", "int4", "w4a16", "nvfp4", "mxfp4", "gptq-int8", "nf4", Gguf]
CacheFormat = Literal["auto", "bf16", "fp8", "int8", "nvfp4"]
Disaggregated = Literal["no", "allowed", "only"]
HOURS = 24
MOST_CONCURRENT = 10**6
LONGEST_CONTEXT = 10**8
MOST_ADAPTERS = MOST_STEPS = 10**4
WIDEST_ADAPTER = 4096
USUAL_RANK = 16
"""Of an adapter: the default of vLLM (max_lora_rank)."""
Factor = Annotated[float, Field(ge=0, le=100)]


LOADS = ("rate", "users", "concurrency", "documents", "trace")
"""What a service may be asked to answer."""
_HOURS = re.compile(r"(\d{1,2})(?::00)? ?h? ?(?:-|to|until) ?(\d{1,2})(?::00)? ?h?")
"""Hours of a day in which anybody asks: 8h-20h, 22:00-6:00."""
_APART = (
    (("users", "concurrency"), "users who wait for their answers: give a rate for that", (
        "arrivals", "length_classes", "disaggregated")),
    (("documents",), "a batch of documents, which has no latency and no arrivals", (
        "arrivals", "day", "length_classes", "disaggregated", "ttft", "tpot", "e2e", "percentile", "headroom",
        "spare_replicas", "spare_nodes")))
"""Loads, what they are called, and the keys that do nothing to them."""


def _users(value: object) -> int:
    return parse_count(value, "number of users", "200", USERS)


def _documents(value: object) -> int:
    return parse_count(value, "number of documents", "1 M", DOCUMENTS)


class Serving(Frozen):
    """A service: requests at a `rate`, from a `trace`, at a `concurrency`, or at full load (none of the three)."""

    kind: Literal["serving"] = "serving"
    """Serving."""
    name: str | None = Field(default=None, min_length=1, max_length=80)
    """Required if several services share a pool."""
    model: str
    """Catalog name or Hugging Face id, which may name a quantization."""
    rate: Rate | None = None
    """Requests/s in an open loop."""
    concurrency: Annotated[int, BeforeValidator(_users), Field(gt=0, le=MOST_CONCURRENT)] | None = None
    """Requests in flight in a closed loop: each finished request is followed by another at once."""
    users: Annotated[int, BeforeValidator(_users), Field(gt=0, le=MOST_CONCURRENT)] | None = None
    """People at once, each of whom waits for the answer, thinks, and asks again."""
    think: Seconds | None = None
    """Mean time from an answer to the same user's next question; none is none at all."""
    documents: Annotated[int, BeforeValidator(_documents), Field(gt=0, le=10**12)] | None = None
    """A batch of so many requests, all there at the start: no latency target, and a deadline holds."""
    trace: str | None = Field(default=None, min_length=1, max_length=1000)
    """File of requests with their times and lengths; `trace_file` gives its path once resolved."""
    input: Lengths | None = None
    """Prompt tokens; none only with a trace."""
    output: Answers | None = None
    """Output tokens; 0 where prompts are read and nothing is written, as by embedders; none only with a trace."""
    images_per_request: Annotated[float, Field(gt=0, le=10_000)] | None = None
    """Images or clips in a prompt beside the tokens of input, for a model that sees; none means text alone."""
    resolution: PixelSize | None = None
    """Pixels of an image or a frame."""
    frames: int | None = Field(default=None, ge=1, le=100_000)
    """Frames of each clip; none means images."""
    audio: Annotated[Seconds, Field(gt=0, le=DAY)] | None = None
    """Sound in a prompt beside the tokens of input, for a model that hears."""
    arrivals: Gaps | None = None
    """How requests arrive; none means Poisson."""
    day: tuple[Factor, ...] | None = Field(default=None, min_length=HOURS, max_length=HOURS)
    """Factors on the rate, or on the users, by hour from midnight; also the hours in which anybody asks: 8h-20h."""
    ttft: Latency | None = None
    """Time to the first token."""
    tpot: TokenLatency | None = None
    """Time per output token after the first."""
    e2e: Latency | None = None
    """Time to the last token."""
    percentile: Percentile | None = None
    """Of latency targets that state none of their own: p99, or mean; none means p95."""
    quantization: tuple[Annotated[Quantization, BeforeValidator(modeled_format)], ...] | None = Field(
        default=None, min_length=1)
    """Weight formats whose quality is acceptable; none means the format in which the model is published."""
    kv_cache: CacheFormat = "auto"
    """Format of keys and values; auto is the engine's default, 16 bits."""
    engine: str = "vllm"
    """Inference engine."""
    engine_version: str | None = Field(default=None, pattern=r"^\d+(\.\d+)*$", max_length=40)
    """None means the newest release in the catalog."""
    prefix_hits: Share = Field(default=0.0, ge=0, lt=1)
    """Share of prompt tokens found in the prefix cache."""
    speculative: Speculative | None = None
    """None means no speculative decoding."""
    startup: Annotated[Seconds, Field(le=DAY)] | None = None
    """From the start of a replica to its first answer: paid for by each that an hour of a day adds; asks what an ideal
    autoscaler needs of a trace or a day."""
    headroom: Share = Field(default=0.0, ge=0, le=10)
    """Extra rate that the replicas must sustain, as a share of the rate."""
    spare_replicas: int = Field(default=0, ge=0, le=1000)
    """Replicas that may fail while the rest still meets the latency targets."""
    spare_nodes: int = Field(default=0, ge=0, le=1000)
    """Nodes that may fail, with all replicas on them, while the rest still meets the latency targets."""
    max_model_len: Annotated[Tokens, Field(le=LONGEST_CONTEXT)] | None = None
    """Tokens of the longest request accepted; none means prompt plus answer, each as long as 99.9% of them at most."""
    memory_fraction: Share | None = Field(default=None, gt=0, le=1)
    """Share of GPU memory that the engine takes, as it means it; none means what the plan finds best, or the engine's
    default."""
    max_sequences: int | None = Field(default=None, gt=0, le=MOST_CONCURRENT)
    """Sequences of a step at most; none alike."""
    max_batched_tokens: Annotated[Tokens, Field(le=LONGEST_CONTEXT)] | None = None
    """Tokens of a step at most, the prefill chunk; none alike."""
    prefill_delay: int | None = Field(default=None, ge=0, le=MOST_STEPS)
    """Steps that a prompt waits at most until all copies of attention have one; 0 is not at all, none alike."""
    adapters: int | None = Field(default=None, gt=0, le=MOST_ADAPTERS)
    """LoRA adapters on every product that each replica holds and serves at once, asked for alike; none serves the model
    alone."""
    lora_rank: int | None = Field(default=None, gt=0, le=WIDEST_ADAPTER)
    """Rank of the adapters; none means 16."""
    length_classes: Literal[1, 2, 4] = 1
    """Number of prompt-length classes that may have their own replicas; neighbors may share them."""
    disaggregated: Disaggregated = "no"
    """Whether prefill and decode may, or must, run on separate replicas."""

    @property
    def label(self) -> str:
        """What the service is called: its name, else its model."""
        return self.name or self.model

    @property
    def ends(self) -> int | None:
        """Requests of a batch, which ends; none of a service."""
        return self.documents

    @property
    def gap_cv(self) -> float:
        """Coefficient of variation of the gaps between requests at a rate."""
        return 1.0 if self.arrivals is None else self.arrivals.cv

    @property
    def levels(self) -> tuple[tuple[str, Latency], ...]:
        """The latency targets asked for, with their names."""
        asked = (("ttft", self.ttft), ("tpot", self.tpot), ("e2e", self.e2e))
        return tuple((name, level) for name, level in asked if level is not None)

    @property
    def unsaid(self) -> dict[str, Level]:
        """The latency targets that state no percentile, at the one that holds for them."""
        at = self.percentile or USUAL_PERCENTILE
        return {name: Level(level.seconds, at) for name, level in self.levels if level.at is None}

    @property
    def clients(self) -> int | None:
        """Users of a closed loop; requests in flight are users who do not think."""
        return self.concurrency if self.users is None else self.users

    @field_validator("engine")
    @classmethod
    def _one_engine(cls, value: str) -> str:
        if "," in value:
            raise ValueError(f"a service runs on one engine, got {value!r}: plan once for each, or planner sweep "
                             f"FILE --vary workload.engine={value.replace(' ', '')}")
        return value

    @field_validator("engine_version", mode="before")
    @classmethod
    def _version_is_text(cls, value: object) -> object:
        if isinstance(value, int | float):
            raise ValueError(f"put the version in quotes, \"{value}\": as a number 0.10 would be 0.1")
        return value

    @field_validator("length_classes", mode="before")
    @classmethod
    def _number_as_text(cls, value: object) -> object:
        """Read a number that comes as text, as those of flags do."""
        return int(value) if isinstance(value, str) and value.isdigit() else value

    @field_validator("day", mode="before")
    @classmethod
    def _one_factor_an_hour(cls, value: object) -> object:
        alone = value[0] if isinstance(value, list | tuple) and len(value) == 1 else value
        if isinstance(alone, str) and (span := _HOURS.fullmatch(alone.strip().lower())):
            first, last = int(span[1]), int(span[2])
            if first > HOURS or last > HOURS or first == last:
                raise ValueError(f"{alone!r}: expected two different hours from 0 to 24, such as 8h-20h")
            return [float(first <= hour < last if first < last else not last <= hour < first) for hour in range(HOURS)]
        listed = value.split(",") if isinstance(value, str) else value
        if isinstance(listed, list | tuple) and len(listed) != HOURS:
            raise ValueError(f"expected {HOURS} multiples of the rate, one per hour from midnight, got {len(listed)}"
                             + ("; a load that is the same all day needs no day" if len(listed) == 1 else ""))
        return listed

    @field_validator("quantization")
    @classmethod
    def _each_once(cls, value: tuple[Quantization, ...] | None) -> tuple[Quantization, ...] | None:
        for name in value or ():
            if value and value.count(name) > 1:
                raise ValueError(f"{name} is given twice")
        return value

    @field_validator("day")
    @classmethod
    def _some_hour_is_busy(cls, value: tuple[float, ...] | None) -> tuple[float, ...] | None:
        if value is not None and not any(value):
            raise ValueError("at least one of the 24 factors must be above zero")
        return value

    @model_validator(mode="after")
    def _one_kind_of_load(self) -> Serving:
        given = [name for name in LOADS if getattr(self, name) is not None]
        if len(given) > 1:
            raise About(given[-1], f"{' and '.join(given)} are given: a service has one of {', '.join(LOADS)}, or "
                        "none for as many requests as go")
        if self.think is not None and self.users is None and given:
            raise About("think", f"think applies to users, but {given[0]} is given")
        for loads, what, keys in _APART:
            for key in keys if given and given[0] in loads else ():
                # what is allowed may be left
                if getattr(self, key) not in (type(self).model_fields[key].default, "allowed"):
                    raise About(key, f"{key} does nothing to {what}")
        if self.arrivals is not None and self.rate is None:
            raise About("arrivals", "arrivals applies to a rate: give rate, such as 20 requests/s")
        if self.day is not None and self.rate is None and self.clients is None:
            raise About("day", "day applies to a rate or to users: give rate, such as 20 requests/s")
        if self.headroom and not (self.rate or self.trace or self.clients):
            raise About("headroom", "headroom applies to a rate, a trace or users, and none is given")
        if self.e2e is not None and self.disaggregated != "no":
            raise About("e2e", "e2e applies to replicas that answer whole requests: leave disaggregated out")
        return self

    @model_validator(mode="after")
    def _percentile_is_of_a_target(self) -> Serving:
        if self.percentile is not None and not self.unsaid:
            raise About("percentile", "percentile is of latency targets that state none, and here is no such target")
        return self

    @model_validator(mode="after")
    def _lengths_are_known(self) -> Serving:
        check_images(self, "images_per_request")
        lengths = [name for name in ("input", "output", "images_per_request", "audio") if getattr(self, name)]
        if self.trace is not None and lengths:
            raise ValueError(f"the trace has the lengths of its requests: leave {' and '.join(lengths)} out")
        return self

    @model_validator(mode="after")
    def _keys_that_need_others(self) -> Serving:
        if self.startup is not None and self.trace is None and self.day is None:
            raise About("startup", "startup applies to a load that changes: give a trace or a day")
        apart = self.disaggregated != "no" or self.length_classes > 1
        if self.startup is not None and self.trace is not None and apart:
            raise ValueError("startup applies to replicas that answer all requests whole: leave disaggregated and "
                             "length_classes out")
        if self.spare_replicas and self.spare_nodes:
            raise ValueError("spare_replicas and spare_nodes are given: a node that fails takes its replicas with it: "
                             "give one of them")
        if self.lora_rank is not None and self.adapters is None:
            raise About("lora_rank", "lora_rank applies to adapters: give their number too, such as adapters 8")
        return self

    @model_validator(mode="after")
    def _no_answer_has_no_tokens(self) -> Serving:
        if self.output is not None and not self.output.mean:
            for key in ("tpot", "speculative", "disaggregated"):
                if getattr(self, key) != type(self).model_fields[key].default:
                    raise About(key, f"{key} applies to answers, and output 0 has none: leave it out")
        return self

    @model_validator(mode="after")
    def _a_usual_request_fits(self) -> Serving:
        tokens = self.mean_request
        if self.max_model_len is not None and tokens is not None and tokens > self.max_model_len:
            raise About("max_model_len", f"max_model_len {self.max_model_len:,} is below the {tokens:,.0f} tokens "
                        "of a mean request")
        return self

    @property
    def mean_request(self) -> float | None:
        """Tokens of a mean request, prompt and output; none where one of them is not told."""
        return None if self.input is None or self.output is None else self.input.mean + self.output.mean
