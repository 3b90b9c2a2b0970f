"""The options that ask a question: a scenario file, flags, or both; for every command that takes a scenario."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, get_args

import click

from planner.catalog.load import Catalog
from planner.cli import options
from planner.scenario.default import Defaults
from planner.scenario.limits import Objective
from planner.scenario.load import FLAGS, load_any
from planner.scenario.scenario import AnyScenario
from planner.scenario.workload import Method

F = TypeVar("F", bound=Callable[..., Any])
LABELS = {path: "--" + flag.replace("_", "-") for flag, path in FLAGS.items()}
Flags = Mapping[str, str | tuple[str, ...] | None]


def _days(context: click.Context, option: click.Parameter, value: int | None) -> str | None:
    """Return a number of days as scenarios write it."""
    return None if value is None else f"{value} d"


def asking(function: F) -> F:
    """Add the argument SCENARIO, the flags that override it, --time-limit and --workers."""
    for option in reversed((
        click.argument("scenario", required=False),
        click.option("--model", metavar="NAME", help="Short name or Hugging Face id."),
        click.option("--method", type=click.Choice(get_args(Method)), help="From scratch, or all weights tuned."),
        click.option("--tokens", metavar="COUNT", help="Tokens to train on: 15T, 300 G."),
        click.option("--seq-len", metavar="TOKENS", help="Sequence length. Default: by model."),
        click.option("--global-batch", metavar="SEQUENCES", help="Sequences in a step. Default: by model."),
        click.option("--deadline", metavar="TIME", help="Longest duration: 60d."),
        click.option("--budget", metavar="MONEY", help="Highest cost: 12MUSD."),
        click.option("--gpus", metavar="N", help="Exactly this many GPUs; for a service, at most this many."),
        click.option("--max-gpus", metavar="N", help="At most this many GPUs."),
        click.option("--max-nodes", metavar="N", help="At most this many nodes."),
        click.option("--max-power", metavar="POWER", help="At most this power of all nodes under load: 2MW."),
        click.option("--on", multiple=True, metavar="NAME,..", help="Node types, GPUs, or 8xh100; repeatable. "
                     "Default: every node type with an admitted offer."),
        click.option("--provider", multiple=True, metavar="NAME,..", help="Only offers of these providers."),
        click.option("--region", multiple=True, metavar="NAME,..", help="Only offers in these regions."),
        click.option("--terms", multiple=True, metavar="TERM,..", help="on-demand (default), spot, reserved-1y, ..."),
        click.option("--price-age", type=click.IntRange(1, 36500), metavar="DAYS", callback=_days,
                     help="Warn about prices older than this."),
        click.option("--stack", metavar="NAME", help="Training framework. Default: megatron-core."),
        click.option("--precision", multiple=True, metavar="FORMAT,..",
                     help="bf16 (default), fp8, mxfp8, fp4 (NVFP4), fp16."),
        *serving_options(),
        click.option("--objective", type=click.Choice(get_args(Objective)), help="What to minimize. Default: cost."),
        click.option("--time-limit", type=options.time_limit, metavar="SECONDS",
                     help="Stop after this many seconds and print the remaining gap."),
        click.option("--workers", type=click.IntRange(1, 256), default=1, metavar="N",
                     help="Processes to search with; the answer stays the same. Default: 1."),
    )):
        function = option(function)
    return function


def serving_options() -> list[Callable[[F], F]]:
    """Return the options that say what a service is asked for, as scenarios write it."""
    return [
        click.option("--rate", metavar="RATE", help="Serve this many requests: 20 (per second), or 300 requests/min."),
        click.option("--input", metavar="TOKENS", help="Prompt tokens per request."),
        click.option("--output", metavar="TOKENS", help="Output tokens per request."),
        click.option("--ttft", metavar="TIME", help="Latency target (SLO) for the first token, at p95: 2s, "
                     "'2 s at p99'."),
        click.option("--tpot", metavar="TIME", help="Latency target (SLO) per token after the first, at p95: 50ms."),
        click.option("--quantization", multiple=True, metavar="FORMAT,..",
                     help="Formats allowed for the weights: bf16, fp8, int8, int4, nvfp4, .... Default: as published."),
        click.option("--engine", metavar="NAME", help="Inference engine. Default: vllm."),
    ]


def question(scenario: str | None, flags: Flags, catalog: Catalog,
             replaced: Mapping[str, str] | None = None) -> tuple[AnyScenario, Defaults]:
    """Return the question asked and its defaults; `replaced` holds values by path that override both."""
    overrides = {FLAGS[flag]: ",".join(value) if isinstance(value, tuple) else value
                 for flag, value in flags.items() if value not in (None, ())}
    labels = LABELS | {path: f"--why-not ({path})" for path in replaced or {}}
    return load_any(scenario, overrides | dict(replaced or {}), catalog, labels=labels)
