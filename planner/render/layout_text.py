"""A layout in words and in axes."""

from __future__ import annotations

from collections.abc import Iterator

from planner.answer.assignment import Assignment, PostTrainingAssignment
from planner.answer.layout import Layout, Stage
from planner.answer.level import Percentiles, Replayed
from planner.render.figures import percent, share_of
from planner.units import plural, show_seconds

_SHARDED = {1: "optimizer states", 2: "optimizer states and gradients",
            3: "optimizer states, gradients and weights"}
_KEPT = {"none": "no recompute", "selective": "selective recompute", "full": "full recompute",
         "mixed": "recompute chosen by layer"}

_AXES = {"tp": "TP {}", "pp": "PP {}", "vpp": "VPP {}", "cp": "CP {}", "ep": "EP {}", "expert_tp": "expert TP {}",
         "zero": "ZeRO {}", "micro_batch": "micro-batch {}", "shard": "sharded over {}", "schedule": "{}"}


def degrees(a: Assignment) -> str:
    """Return the degrees above one, of a service those of a replica: `TP 4 PP 5 DP 128`."""
    layout = a.layout
    names = {"TP": layout.tp, "PP": layout.pp, "VPP": layout.vpp, "CP": layout.cp, "EP": layout.ep,
             "DP": layout.dp // (a.serving.replicas if a.serving else 1)}
    whole = ["expert TP 1"] if a.serving is None and layout.expert_tp == 1 < min(layout.tp, layout.ep) else []
    return " ".join([f"{label} {value}" for label, value in names.items() if value > 1] + whole) or "one GPU"


def brief(a: Assignment) -> str:
    """Return what tells a layout from its neighbors, for a narrow column; degrees of one are left out."""
    if a.serving is not None:
        return f"{plural(a.serving.replicas, 'replica')} of {degrees(a)}, {a.layout.precision}"
    layout, parts = a.layout, [degrees(a)]
    if layout.zero and layout.shard > 1:
        parts.append(f"ZeRO {layout.zero}")
    if layout.micro_batch > 1:
        parts.append(f"micro-batch {layout.micro_batch}")
    if layout.recompute != "none":
        parts.append(_KEPT[layout.recompute])
    return ", ".join(parts + _offloads(a))


def differences(a: Assignment, other: Assignment) -> Iterator[str]:
    """Yield the axes in which a layout is not as another, of what was chosen and not what followed from it."""
    mine, theirs = a.layout, other.layout
    if _offloads(a) != _offloads(other):
        yield " and ".join(_offloads(a)) or "no offload"
    for name in ("tp", "pp", "vpp", "cp", "ep", "expert_tp", "zero", "recompute", "micro_batch", "shard", "schedule",
                 "no_sync", "sequence_parallel"):
        value: object = getattr(mine, name)
        follows = name == "expert_tp" and (mine.expert_tp == mine.tp) == (theirs.expert_tp == theirs.tp)
        if value == getattr(theirs, name) or follows or (
                a.serving is not None and name in ("micro_batch", "expert_tp")):
            continue
        if name == "recompute":
            yield _KEPT[mine.recompute]
        elif name == "zero" and not value:
            yield "no ZeRO"
        else:
            yield _AXES[name].format(value) if name in _AXES else f"{name} {'on' if value else 'off'}"


WHOLE_FROM = 2
"""The ZeRO stage from which gradients that are not reduced are no longer sharded."""
_REFERENCES = {"copy": "a frozen copy of the model beside it as the reference",
               "adapters-off": "the model with its adapters off as the reference",
               "precomputed": "log-probabilities of the reference worked out before training"}


def axes(assignment: Assignment) -> str:
    """Return every axis of a layout."""
    layout, service = assignment.layout, assignment.serving
    dp = layout.dp // (service.replicas if service else 1)
    each = f"TP {layout.tp} x PP {layout.pp} x CP {layout.cp} x DP {dp}"
    if service:
        each = f"each replica TP {layout.tp} x PP {layout.pp}" + (f" x DP {dp} of attention" if dp > 1 else "")
    gpus = layout.tp * layout.pp * layout.cp * dp
    parts = [f"{each} = {plural(gpus, 'GPU')}", f"EP {layout.ep}"]
    if layout.expert_tp is not None and (layout.expert_tp > 1 or layout.tp > 1):
        parts.append(f"expert TP {layout.expert_tp}")
    if assignment.kind != "serving":
        parts += [f"VPP {layout.vpp}", f"ZeRO {layout.zero} over {plural(layout.shard, 'GPU')}",
                  f"micro-batch {layout.micro_batch}", plural(layout.micro_batches, "micro-batch"),
                  f"recompute {layout.recompute}"]
    return ", ".join([*parts, layout.precision, *_offloads(assignment)])


def in_words(assignment: Assignment) -> str:
    """Return what is split over what."""
    layout = assignment.layout
    parts = []
    if layout.tp > 1:
        parts.append(f"every matrix split over {layout.tp} GPUs")
    if layout.cp > 1:
        parts.append(f"every sequence split over {layout.cp} GPUs")
    if layout.pp > 1:
        parts.append(_pipeline_words(layout))
    if layout.ep > 1:
        parts.append(f"experts split over {layout.ep} GPUs")
    parts.append(_copies_words(assignment))
    if assignment.kind != "serving":
        parts.append(_KEPT[layout.recompute])
    if layout.no_sync and layout.zero >= WHOLE_FROM:
        parts.append("gradients kept whole on each GPU until the last micro-batch (no_sync)")
    if reference := getattr(assignment, "reference", None):
        parts.append(_REFERENCES[reference])
    if isinstance(assignment, PostTrainingAssignment):
        rollouts = assignment.rollouts
        where = "on the same GPUs" if assignment.placement == "colocated" else f"on {rollouts.gpus:,} {rollouts.gpu}"
        degrees = f", {split} each" if (split := rollouts.degrees) else ""
        parts.append(f"answers from {plural(rollouts.replicas, 'replica')} of {rollouts.engine}{degrees}, {where}")
    return "; ".join(parts)


def _pipeline_words(layout: Layout) -> str:
    stages = plural(layout.pp, "pipeline stage")
    if layout.stages and not uneven(layout.stages):
        stages += f" of {plural(layout.stages[0].layers, 'layer')}"
    return f"{stages} in {layout.vpp} interleaved chunks each" if layout.vpp > 1 else stages


def _copies_words(assignment: Assignment) -> str:
    layout = assignment.layout
    if assignment.serving is not None:
        each = layout.dp // assignment.serving.replicas
        attention = f"{plural(each, 'copy')} of attention in each of " if each > 1 else ""
        return attention + plural(assignment.serving.replicas, "replica")
    if assignment.kind == "serving":
        return plural(layout.dp, "copy") + " of the model"
    work = f"{plural(layout.micro_batches, 'micro-batch')} of {_batch_words(assignment)} a step"
    sharded = f", {_SHARDED[layout.zero]} sharded over {layout.shard} GPUs" if layout.zero and layout.shard > 1 else ""
    copies = plural(layout.dp, "copy") if layout.dp > 1 else "one copy"
    return f"{copies} of the model, {work} for each{sharded}"


def _batch_words(assignment: Assignment) -> str:
    """Return what one micro-batch holds: samples, or as many packed tokens as one of packed sequences takes."""
    layout = assignment.layout
    if isinstance(assignment, PostTrainingAssignment) and assignment.micro_batch_tokens:
        most = max(assignment.micro_batch_tokens * layout.cp, assignment.rollouts.longest_tokens)
        return f"up to {most:,} packed tokens"
    return plural(layout.micro_batch, "sample" if assignment.kind == "diffusion" else sample_noun(assignment))


def sample_noun(assignment: Assignment) -> str:
    """Return what a sample of training text is called: a pair of two answers, or a sequence."""
    return "sequence" if getattr(assignment, "sequences_per_sample", None) in (None, 1) else "pair"


def _offloads(assignment: Assignment) -> list[str]:
    out = assignment.layout.offload
    to = {"nvme": "NVMe"}.get(out.to, out.to)
    # checkpoints go to the host even where states lie on flash; of a denoiser, what attention keeps may go there too
    kept = "of attention's activations" if assignment.kind == "diffusion" else "checkpoints"
    shares = (("optimizer states", out.optimizer, to), ("weights", out.parameters, to),
              (kept, out.activations, "host"), ("checkpoints", getattr(assignment, "checkpoints", 0.0), "host"))
    return [f"{share_of(share, name)} on {place}" for name, share, place in shares if share]


def uneven(stages: tuple[Stage, ...]) -> bool:
    """Say whether stages differ in their layers or in what these keep."""
    return len({(s.layers, s.recompute_layers.model_dump_json()) for s in stages}) > 1


def prompts_of(a: Assignment) -> str:
    """Return which prompts replicas answer, where requests are split by length."""
    prompts = a.serving.prompts if a.serving else None
    if prompts is None:
        return ""
    low, high = prompts
    return (f" for prompts from {low:,} tokens" if high is None else f" for prompts up to {high:,} tokens" if low == 1
            else f" for prompts of {low:,} to {high:,} tokens")


def asked_latency(percentiles: Percentiles) -> tuple[str, str]:
    """Return the percentile of a latency's target, p95 where there is none, and the latency there."""
    at, seconds = (percentiles.asked.at, percentiles.asked.seconds) if percentiles.asked else ("p95", percentiles.p95)
    return at, show_seconds(seconds)


def met(replayed: Replayed) -> str:
    """Return what share of the requests met every latency target, where one is given."""
    latencies = replayed.ttft_seconds, replayed.tpot_seconds, replayed.e2e_seconds
    if not any(each is not None and each.asked for each in latencies):
        return "no latency target is given"
    return f"{percent(replayed.share_within_level)} met every latency target"
