"""A layout in words and in axes."""

from __future__ import annotations

from planner.answer.assignment import Assignment
from planner.answer.layout import Layout, Stage
from planner.render.figures import share_of
from planner.units import plural

_SHARDED = {1: "optimizer states", 2: "optimizer states and gradients",
            3: "optimizer states, gradients and weights"}
_KEPT = {"none": "no recompute", "selective": "selective recompute", "full": "full recompute",
         "mixed": "recompute chosen by layer"}


def degrees(layout: Layout) -> str:
    """Return the degrees whose product is the GPU count: `TP 4 x PP 5 x CP 1 x DP 128`."""
    return f"TP {layout.tp} x PP {layout.pp} x CP {layout.cp} x DP {layout.dp}"


def brief(layout: Layout) -> str:
    """Return what tells a layout from its neighbors, for a narrow column; degrees of one are left out."""
    names = {"TP": layout.tp, "PP": layout.pp, "VPP": layout.vpp, "CP": layout.cp, "EP": layout.ep,
             "DP": layout.dp}
    parts = [" ".join(f"{label} {value}" for label, value in names.items() if value > 1) or "one GPU"]
    if layout.zero:
        parts.append(f"ZeRO {layout.zero}")
    if layout.micro_batch > 1:
        parts.append(f"micro-batch {layout.micro_batch}")
    if layout.recompute != "none":
        parts.append(_KEPT[layout.recompute])
    return ", ".join(parts + _offloads(layout))


def axes(assignment: Assignment) -> str:
    """Return every axis of a layout."""
    layout = assignment.layout
    parts = [f"{degrees(layout)} = {plural(assignment.gpus, 'GPU')}", f"EP {layout.ep}"]
    if layout.expert_tp is not None and layout.expert_tp > 1:
        parts.append(f"expert TP {layout.expert_tp}")
    if assignment.kind == "training":
        parts += [f"VPP {layout.vpp}", f"ZeRO {layout.zero} over {layout.shard} GPUs",
                  f"micro-batch {layout.micro_batch}", plural(layout.micro_batches, "micro-batch"),
                  f"recompute {layout.recompute}"]
    return ", ".join([*parts, layout.precision, *_offloads(layout)])


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
    if assignment.kind == "training":
        parts.append(_KEPT[layout.recompute])
    return "; ".join(parts)


def _pipeline_words(layout: Layout) -> str:
    stages = plural(layout.pp, "pipeline stage")
    if layout.stages and not uneven(layout.stages):
        stages += f" of {plural(layout.stages[0].layers, 'layer')}"
    return f"{stages} in {layout.vpp} interleaved chunks each" if layout.vpp > 1 else stages


def _copies_words(assignment: Assignment) -> str:
    layout = assignment.layout
    if assignment.kind == "serving":
        return plural(layout.dp, "replica")
    work = f"{plural(layout.micro_batches, 'micro-batch')} of {plural(layout.micro_batch, 'sequence')} a step"
    sharded = f", {_SHARDED[layout.zero]} sharded over {layout.shard} GPUs" if layout.zero else ""
    copies = plural(layout.dp, "copy") if layout.dp > 1 else "one copy"
    return f"{copies} of the model, {work} for each{sharded}"


def _offloads(layout: Layout) -> list[str]:
    out = layout.offload
    to = {"nvme": "NVMe"}.get(out.to, out.to)
    # checkpoints go to the host even where states lie on flash
    shares = (("optimizer states", out.optimizer, to), ("weights", out.parameters, to),
              ("checkpoints", out.activations, "host"))
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
