"""The one table of what a question may be told beside a file: each a flag, a file key and a keyword of one name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from numbers import Integral, Real
from os import PathLike, fspath
from typing import Any, get_args

from planner.catalog.generation_law import StepCache
from planner.catalog.hardware import Precision
from planner.catalog.preference import Tuned
from planner.catalog.stack import Method
from planner.catalog.stack import Reference as Frozen
from planner.errors import InputError
from planner.scenario.diffusion import DiffusionMethod, DiffusionOptimizer, Latents
from planner.scenario.limits import ServingObjective
from planner.scenario.posttraining import Placement, Reference, RlMethod
from planner.scenario.serving import CacheFormat, Disaggregated
from planner.scenario.workload import Loss, Optimizer
from planner.yaml_io import MAX_DEPTH

LARGEST_BITS = 128
"""Of a whole number; no count comes near."""
LONGEST_DATE = len("2027-06-30T18:00")


@dataclass(frozen=True, slots=True)
class Flag:
    """One value of a scenario that can be given alone."""

    path: str
    """Where a file has it."""
    help: str
    metavar: str = ""
    choices: tuple[str, ...] = ()
    many: bool = False
    """Repeatable, and a list in a file."""
    switch: bool = False
    """Given without a value."""
    bare: str = ""
    """What the command line means by the flag without a value."""
    also: str = ""
    """Another name that means the same: the key of a file where that is longer."""


def _of(block: str, **flags: Flag) -> dict[str, Flag]:
    return {name: Flag(f"{block}{flag.path or name}", flag.help, flag.metavar, flag.choices, flag.many, flag.switch,
                       flag.bare, flag.also) for name, flag in flags.items()}


TABLE: dict[str, Flag] = {
    **_of("workload.",
          model=Flag("", "Short name or Hugging Face id.", "NAME"),
          method=Flag("", "Train from scratch, tune all weights, train adapters, only hold the model, tune on "
                      "preferences, or learn from rewards. Of a diffusion model: lora, lokr, full, inference.",
                      choices=(*get_args(Method), *get_args(RlMethod), *(
                          name for name in get_args(DiffusionMethod) if name not in get_args(Method)))),
          tokens=Flag("", "Tokens to train on: 15T, 300 G, chinchilla, '100 per parameter'.", "COUNT"),
          seq_len=Flag("sequence_length", "Sequence length. Default: by model; for fine-tuning at most 4096.", "TOKENS",
                       also="sequence_length"),
          global_batch=Flag("", "Sequences in a step (samples, when tuning on preferences), or '4 M tokens'. Default: "
                            "by model; for tuning 128.", "SEQUENCES"),
          per_device_batch=Flag("", "Of training: samples that each GPU takes at once, instead of the batch of a step.",
                                "N"),
          grad_accum=Flag("", "Of training: how often each GPU takes so many in a step. Default: 1.", "N"),
          samples=Flag("", "Samples to train on (pairs, when tuning on preferences), instead of tokens: 50k.",
                       "COUNT"),
          epochs=Flag("", "Passes over the samples. Default: 1.", "N"),
          mean_length=Flag("", "Mean length of samples; with --seq-len, their longest, they are not packed.", "TOKENS"),
          dataset=Flag("", "JSONL or Parquet file of samples: their number and lengths.", "FILE"),
          tokenizer=Flag("", "Tokenizer that counts the tokens of the dataset.", "NAME"),
          packing=Flag("", "Fill sequences with several samples.", switch=True),
          stack=Flag("", "Training frameworks searched. Default: auto, those in use for the method.", "NAME,..",
                     many=True),
          launchable=Flag("", "Only layouts that `planner launch` can write for this target, or for each stack's "
                          "(auto).", "TARGET"),
          precision=Flag("", f"{', '.join(get_args(Precision))}. Default: bf16.", "FORMAT,..", many=True),
          optimizer=Flag("", "Instead of the stack's AdamW.", choices=(*get_args(Optimizer), *(
              name for name in get_args(DiffusionOptimizer) if name not in get_args(Optimizer)))),
          optimizer_in_backward=Flag("", "Step during backward, freeing each gradient at once.", switch=True),
          loss=Flag("", "Kernel of the cross entropy. Default: the stack's.", choices=get_args(Loss)),
          tuning=Flag("", "What trains under a method of post-training. Default: full, or lora with --lora-rank.",
                      choices=get_args(Tuned)),
          lora_rank=Flag("", "Rank of adapters, trained or served. Default: 16.", "N"),
          lokr_factor=Flag("", "Of a diffusion model's Kronecker adapters (LoKr): side of the smaller matrix. Default: "
                           "16.", "N"),
          lora_targets=Flag("", "What has adapters: attention, mlp, experts, embeddings, or modules such as q_proj. "
                            "Default: every product.", "NAME,..", many=True),
          adapters=Flag("", "LoRA adapters that each replica serves at once, beside the model.", "N"),
          trained_layers=Flag("", "Train only the last N layers and the head. Default: all.", "N"),
          images=Flag("", "Images or clips of a sample, for a model that sees; of a diffusion model: --samples.", "N"),
          images_per_request=Flag("", "Images (or clips) in a prompt beside its --input tokens, for a model that sees.",
                                  "N"),
          audio=Flag("", "Sound of a sample or in a prompt, for a model that hears or makes it: 30s.", "TIME"),
          resolution=Flag("", "Width and height of an image in pixels, 1024x1024. Default: 1024x1024; of a diffusion "
                          "model: by model.", "WxH"),
          frames=Flag("", "Frames of a clip. Default: images; of a diffusion model: by model.", "N"),
          samples_per_sequence=Flag("", "Samples with images that share a sequence. Default: as packing has it, or 1.",
                                    "N"),
          trained_parts=Flag("", "What of a model that sees trains: language (default), projector, encoder.",
                             "PART,..", many=True),
          batch=Flag("", "Of a diffusion model: images or clips of a step on all GPUs together, or of a call. "
                     "Default: 1, or searched.", "N"),
          steps=Flag("", "Steps to train for, instead of tokens or epochs; of a diffusion model that is run, denoising "
                     "steps.", "N"),
          guidance=Flag("", "Of a diffusion model that is run: scale of guidance; up to 1 is none. Default: by model.",
                        "SCALE"),
          compile=Flag("", "Of a diffusion model that is run: compile the denoiser.", switch=True),
          step_cache=Flag("", "Of a diffusion model that is run: leave out passes that change little.",
                          choices=get_args(StepCache)),
          latents=Flag("", "Of a diffusion model: latents and embeddings cached before training (default), or made "
                       "online.", choices=get_args(Latents)),
          ema=Flag("", "Of a diffusion model: keep a moving average of the weights.", switch=True),
          prompts=Flag("", "Of reinforcement learning: prompts of a step. Default: 128.", "N"),
          samples_per_prompt=Flag("", "Of reinforcement learning: answers drawn to each prompt. Default: 8, of ppo and "
                                  "reinforce 1.", "N"),
          reward=Flag("", "Who judges answers: rule (default), model, or the seconds of a step that it takes "
                      "elsewhere.",
                      "WHO"),
          reward_model=Flag("", "The model that judges, with --reward model, or the teacher. Default: one as the "
                            "policy.", "NAME"),
          critic=Flag("", "The model that values answers, with --method ppo. Default: one as the policy.", "NAME"),
          reference=Flag("", "What the policy is held near: of dpo and kto a frozen copy, itself with adapters off, or "
                         "precomputed; of reinforcement learning initial, or none. Default: as usual.",
                         choices=(*get_args(Frozen), *get_args(Reference))),
          policy_lag=Flag("", "Steps that answers may lie behind the policy: 0 (default) waits for every update.", "N"),
          placement=Flag("", "Whether trainer and rollouts share GPUs. Default: any.", choices=get_args(Placement)),
          rollouts_on=Flag("", "Node types or GPUs of rollouts with their own. Default: as the trainer.", "NAME,..",
                           many=True),
          rate=Flag("", "Serve this many requests: 20 (per second), or 300 requests/min.", "RATE"),
          concurrency=Flag("", "Requests in flight, instead of a rate.", "N"),
          users=Flag("", "People at once, each waiting for the answer before asking again.", "N"),
          think=Flag("", "Mean time a user thinks between answer and next question. Default: none.", "TIME"),
          documents=Flag("", "A batch of this many requests by a --deadline, instead of a service: 1M.", "N"),
          requests=Flag("trace", "CSV or JSON lines of requests with their times and lengths, instead of a load.",
                        "FILE", also="trace"),
          input=Flag("", "Prompt tokens per request.", "TOKENS"),
          output=Flag("", "Output tokens per request.", "TOKENS"),
          arrivals=Flag("", "Gaps between requests: poisson (default), or a coefficient of variation, cv=2.", "HOW"),
          day=Flag("", "24 multiples of the rate, one per hour from midnight.", "F,.."),
          ttft=Flag("", "Latency target (SLO) for the first token, at p95: 2s, '2 s at p99'.", "TIME"),
          tpot=Flag("", "Latency target (SLO) per token after the first, at p95: 50ms.", "TIME"),
          e2e=Flag("", "Latency target (SLO) to the last token, at p95: 10s.", "TIME"),
          percentile=Flag("", "Of latency targets that state none: p99, or mean. Default: p95.", "P"),
          quantization=Flag("", "Formats allowed for the weights: bf16, fp8, int8, int4, nvfp4, q4_k_m, .... Default: "
                            "as published.", "FORMAT,..", many=True),
          kv_cache=Flag("", "Format of the KV cache. Default: the engine's own.", choices=get_args(CacheFormat)),
          engine=Flag("", "Inference engine. Default: vllm.", "NAME"),
          engine_version=Flag("", "Release of the engine. Default: the newest in the catalog.", "X.Y"),
          prefix_hits=Flag("", "Share of prompt tokens found in the prefix cache: 70%.", "SHARE"),
          speculative=Flag("", "Tokens drafted in a step, and the share accepted: 3:0.7.", "N:SHARE"),
          startup=Flag("", "Time to start a replica, paid for; adds what an ideal autoscaler would need.", "TIME"),
          headroom=Flag("", "Extra load to withstand, as a share of the rate: 20%.", "SHARE"),
          spare_replicas=Flag("", "Replicas that may fail with the latency targets still met.", "N"),
          spare_nodes=Flag("", "Nodes that may fail with the latency targets still met.", "N"),
          max_model_len=Flag("", "Longest request accepted, prompt and output. Default: both as given where they are "
                             "plain numbers, else what 99.9% of each need; of a trace its longest.", "TOKENS"),
          memory_fraction=Flag("", "Share of GPU memory that the engine takes. Default: what is best, or the engine's.",
                               "SHARE"),
          max_sequences=Flag("", "Sequences in a step at most. Default: alike.", "N"),
          max_batched_tokens=Flag("", "Tokens in a step at most, the prefill chunk. Default: alike.", "TOKENS"),
          prefill_delay=Flag("", "Steps that prompts wait for those on other copies of attention. Default: alike.",
                             "N"),
          length_classes=Flag("", "Classes of prompt length, each with its own replicas: 1, 2 or 4.", "N"),
          disaggregated=Flag("", "Prefill and decode on separate replicas. Default: no.",
                             choices=get_args(Disaggregated), bare="only")),
    "on": Flag("hardware.candidates", "Node types, GPUs, or 8xh100; repeatable. Default: every node type with an "
               "admitted offer.", "NAME,..", many=True, also="candidates"),
    **_of("sourcing.",
          provider=Flag("rent.providers", "Only offers of these providers.", "NAME,..", many=True, also="providers"),
          region=Flag("rent.regions", "Only offers in these regions: us-east-1, europe.", "NAME,..", many=True,
                      also="regions"),
          terms=Flag("rent.terms", "on-demand (default), spot, reserved-1y, ...; buy: nodes may be bought.", "TERM,..",
                     many=True),
          price=Flag("rent.price", "What you pay for a GPU and hour, in place of what offers ask: 2.20.", "MONEY"),
          own=Flag("", "Nodes or GPUs that you own, at the price of their electricity: 32xdgx-h100,4x4090.",
                   "NxNAME,..", many=True),
          utilization=Flag("buy.utilization", "Of nodes that may be bought: share of the time in use. Default: 80%.",
                           "SHARE"),
          years=Flag("buy.years", "How long nodes are rented or bought for. Default: as the site keeps them.", "N"),
          site=Flag("", "Site of owned and bought nodes: its prices of electricity and space.", "NAME"),
          electricity=Flag("", "Price of electricity for owned and bought nodes: 0.12 (USD/kWh). Default: the site's.",
                           "PRICE"),
          price_age=Flag("", "Warn about prices older than this.", "DAYS")),
    **_of("limits.",
          deadline=Flag("", "Longest duration, or a date: 60d, 2027-06-30.", "TIME"),
          budget=Flag("", "Highest cost: 12MUSD.", "MONEY"),
          gpus=Flag("", "Exactly this many GPUs; for a service, at most this many.", "N"),
          max_gpus=Flag("", "At most this many GPUs.", "N"),
          max_nodes=Flag("", "At most this many nodes.", "N"),
          one_provider=Flag("", "For services: all nodes from one provider.", switch=True),
          homogeneous=Flag("", "For services: all replicas on one type of node.", switch=True),
          max_power=Flag("", "At most this power of all nodes under load: 2MW.", "POWER")),
    "objective": Flag("objective", "What to minimize, or for a service the rate or users to maximize. Default: "
                      "cost.",
                      choices=get_args(ServingObjective)),
    "robust": Flag("robust", "For training: minimize the mean cost over the interval of the step time, not the cost "
                   "at its median.", switch=True),
    "confidence": Flag("confidence", "Confidence of the memory verdict, 0.5 to 1. Default: 0.95.", "SHARE"),
}
"""Name -> what it sets. A value that is not listed here is given in a file or a mapping."""
FLAGS: dict[str, str] = {name: flag.path for name, flag in TABLE.items()}
"""Name -> the scenario value that it sets."""
NAMES: dict[str, str] = FLAGS | {flag.also: flag.path for flag in TABLE.values() if flag.also}
"""The same with the other names."""


def plain(value: object, name: str, depth: int = 0) -> Any:  # noqa: ANN401 - as a file would hold it
    """Return a value as a file would hold it: text, numbers, lists and mappings. Raises InputError for any other."""
    if depth > MAX_DEPTH:
        raise InputError(f"{name}: nested deeper than {MAX_DEPTH} levels")
    value = sorted(value, key=str) if isinstance(value, set | frozenset) else value  # which has no order of its own
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, Integral) and int(value).bit_length() <= LARGEST_BITS:
        return int(value)
    if isinstance(value, Real) and not isinstance(value, Integral):
        return float(value)
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: plain(inner, f"{name}.{key}" if depth or name == "scenario" else name, depth + 1)
                for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner, name, depth + 1) for inner in value]
    if (text := _as_text(value)) is not None:
        return text
    raise InputError(f"{name}: expected text, a number, or a list or mapping of these, got {_kind(value)}")


def _as_text(value: object) -> str | None:
    """Return spans of time, dates, paths and decimals as a file would write them; none of anything else."""
    if isinstance(value, timedelta):
        return f"{value.total_seconds():.6f} s"
    if isinstance(value, date):
        return value.isoformat()[:LONGEST_DATE]
    if isinstance(value, PathLike):
        path = fspath(value)
        return path if isinstance(path, str) else None
    return str(value) if isinstance(value, Decimal) else None


def _kind(value: object) -> str:
    if isinstance(value, Integral):
        return f"a number of more than {LARGEST_BITS} bits"
    return "keys that are not text" if isinstance(value, Mapping) else f"a value of type {type(value).__name__}"
