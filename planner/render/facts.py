"""What an assignment says, once: facts in groups, and shares of memory and time, for text and for pages alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from planner.answer.assignment import Assignment, DiffusionAssignment, ServingAssignment, TrainingAssignment
from planner.answer.breakdown import Evidence, Memory, Time
from planner.answer.level import Percentiles, Replayed, ServingFigures
from planner.answer.show_as import Group, ShowAs
from planner.render.figures import each_in_words, in_unit, listed, pace, paid_each, part_of_step, percent
from planner.render.layout_text import axes, in_words, met, prompts_of
from planner.render.made import made_facts
from planner.render.serving import at_best, most_of
from planner.units import DAY, GIB, MONTH_DAYS, plural, show_bytes, show_count, show_days, show_seconds, show_usd

_UNLIKE = {"stack": "of this stack itself", "kind": "of such a model", "architecture": "on this GPU architecture",
           "release": "of this release", "gpu": "on this GPU", "weights": "with weights held like that",
           "precision": "in this precision", "model": "split over GPUs alike", "gpus": "at this number of GPUs",
           "tokens": "at this sequence length", "whole": "of a whole step", "media": "with images or sound"}
"""By what no comparable run is like the question: in words."""
_LABELS = {"kv_cache": "key-value cache", "communication_buffers": "communication buffers"}
_EXCHANGES = {"ring": "keys and values go round a ring", "all-to-all": "all-to-alls of heads (Ulysses)",
              "all-gather": "all keys and values are gathered"}


@dataclass(frozen=True, slots=True)
class LabeledFigure:
    """One figure as people read it, with its unit."""

    label: str
    value: str
    group: Group


@dataclass(frozen=True, slots=True)
class FigurePart:
    """A named part of a whole: its number, the unit of that, and its share of the whole, 0 to 1."""

    label: str
    number: str
    unit: str
    share: float


def facts(a: Assignment, confidence: float | None = None) -> list[LabeledFigure]:
    """Return all facts of an assignment, group by group; `confidence` is that of the memory verdict, 0 to 1."""
    speed = _trained(a) if a.serving is None else _served(a, a.serving)
    groups: dict[Group, Iterator[tuple[str, str]]] = {
        "hardware": _hardware(a), "layout": _layout(a), "memory": _memory(a.memory, confidence), "performance": speed,
        "level": _replayed(a.serving.replayed if a.serving else None), "cost": _cost(a), "purchase": _purchase(a)}
    return [LabeledFigure(label, value, group) for group, pairs in groups.items()
            for label, value in (*pairs, *_shown(a, group))]


def memory_parts(memory: Memory, most: int | None = None) -> list[FigurePart]:
    """Return what takes a GPU's memory, at most so many parts; shares are of what is usable."""
    return [FigurePart(label, f"{size / GIB:,.2f}", "GiB", size / memory.usable_bytes)
            for label, size in _largest(memory.components.model_dump(), most)]


def time_parts(time: Time, most: int | None = None) -> list[FigurePart]:
    """Return what takes the time of a step, in at most so many parts."""
    step = time.step_seconds
    return [FigurePart(label, *part_of_step(seconds, step), seconds / step)
            for label, seconds in _largest(time.components.model_dump(), most)]


def _largest(parts: dict[str, float], most: int | None) -> list[tuple[str, float]]:
    """Return what is not zero as it stands; of more than `most` the smallest together, last."""
    there = [(_LABELS.get(name, name.replace("_", " ")), amount) for name, amount in parts.items() if amount]
    if most is None or len(there) <= most:
        return there
    others = sorted(there, key=lambda part: part[1])[:len(there) - most + 1]
    kept = [part for part in there if part not in others]
    return [*kept, (f"{len(others)} others", sum(amount for _, amount in others))]


def latencies(serving: ServingFigures) -> tuple[list[str], list[list[str]]]:
    """Return heads and rows of TTFT and TPOT: the target, and the percentiles as computed, and as replayed where they
    were; what a target asks for beside p50 and p95 is a column.
    """
    replay = serving.replayed
    rows = [("first token (TTFT)", serving.ttft_seconds, replay and replay.ttft_seconds),
            ("each token (TPOT)", serving.tpot_seconds, replay and replay.tpot_seconds)]
    rows = rows if serving.writes else [("answer", *rows[0][1:])]
    if serving.e2e_seconds is not None:
        rows.append(("last token (E2E)", serving.e2e_seconds, replay and replay.e2e_seconds))
    if serving.made is not None:
        rows = [(serving.noun[:-1], *rows[-1][1:])]
    asked = [each.asked for _, each, _ in rows if each.asked]
    columns = ["p50", "p95", *sorted({target.at for target in asked} - {"p50", "p95"})]
    ways = ["computed", "replayed"] if replay else ["computed"]
    heads = [*(["target"] if asked else []), *(f"{way} {column}" for way in ways for column in columns)]
    return heads, [[label, *([_target(computed)] if asked else []),
                    *("grows" if serving.overloaded and computed is not serving.tpot_seconds else _at(each, column)
                      for each in (computed, replayed) if each for column in columns)]
                   for label, computed, replayed in rows]


def _target(computed: Percentiles) -> str:
    return f"{show_seconds(computed.asked.target_seconds)} at {computed.asked.at}" if computed.asked else "none"


def _at(each: Percentiles, column: str) -> str:
    seconds: float | None = getattr(each, column, None)
    if seconds is None and each.asked and each.asked.at == column:
        seconds = each.asked.seconds
    return "-" if seconds is None else show_seconds(seconds)


def _shown(a: Assignment, group: Group) -> Iterator[tuple[str, str]]:
    """Yield the fields that say themselves how they are shown."""
    for name, field in type(a).model_fields.items():
        for shown in field.metadata:
            if isinstance(shown, ShowAs) and shown.group == group and (value := getattr(a, name)) is not None:
                several = value if isinstance(value, tuple) else [value]
                yield from ((getattr(one, "label", shown.label), in_unit(name, one)) for one in several)


def _hardware(a: Assignment) -> Iterator[tuple[str, str]]:
    yield "GPUs", a.counted_gpus
    nodes = [f"{each.nodes:,} x {each.node}" for each in a.kinds_of_nodes]
    yield "nodes", " and ".join([*nodes, *([f"{a.spare_nodes:,} spare"] if a.spare_nodes else [])])
    if a.idle_gpus:
        yield "idle", f"{plural(a.idle_gpus, 'GPU')}, paid for and unused"


def _layout(a: Assignment) -> Iterator[tuple[str, str]]:
    layout = a.layout
    yield "in words", in_words(a)
    yield "axes", axes(a)
    if layout.schedule not in (None, "1f1b"):
        yield "schedule", f"{layout.schedule}"
    if layout.tp > 1 and layout.sequence_parallel is False:
        yield "sequence parallel", "off"
    if layout.no_sync:
        yield "gradients", "of micro-batches accumulate without a reduction in between (no_sync)"
    if layout.cp_method:
        yield "context exchange", _EXCHANGES[layout.cp_method]


def _memory(memory: Memory, confidence: float | None) -> Iterator[tuple[str, str]]:
    if memory.median is not None:
        allocated, reserved, device = (f"{size / GIB:.1f}" for size in memory.median.model_dump().values())
        spread = "" if confidence is None else (f"; {confidence * 100:.4g}% of comparable runs stay within "
                                                f"{memory.peak_bytes / memory.median.device:.2f}x")
        if memory.interval90_bytes is not None:
            low, high = (f"{size / GIB:.1f}" for size in memory.interval90_bytes)
            spread = f", 90% interval {low} to {high}{spread}"
        yield "expected", (f"{allocated} GiB allocated, {reserved} reserved (PyTorch), {device} on the device "
                           f"(nvidia-smi){spread}")
    if memory.evidence is not None:
        yield "evidence", held_against(memory.evidence, "memory")
    for name, size in (("host memory", memory.host_bytes_per_node), ("NVMe", memory.nvme_bytes_per_node)):
        if size:
            parts = memory.host_parts if name == "host memory" else {}
            by = ", ".join(f"{show_bytes(part)} {held}" for held, part in parts.items())
            yield f"{name} per node", show_bytes(size) + (f": {by}" if by else "")


def held_against(evidence: Evidence, what: str, lacks: str = "of it by this method") -> str:
    """Return how many published runs a prediction is held against, how far off it is there, and what they lack."""
    if not evidence.validated or evidence.median_abs_error is None:
        return f"{what} not validated for this stack: no measured run {lacks}"
    unlike = [_UNLIKE[name] for name in evidence.unlike if name in _UNLIKE]
    return (f"{plural(evidence.rows, 'comparable published run')} from {plural(evidence.sources, 'source')}, median "
            f"error {100 * evidence.median_abs_error:.2g}%" + (f"; none {', '.join(unlike)}" if unlike else ""))


def _trained(a: Assignment) -> Iterator[tuple[str, str]]:
    time = a.time
    yield "tokens", pace(a) + ("" if isinstance(a, DiffusionAssignment) else
                               f", {show_count(time.tokens_per_second_per_gpu * a.gpus)} tokens/s in all")
    yield from _step(time)
    if time.steps:
        whole = "" if a.duration_days is not None else f"; {show_seconds(time.steps * time.step_seconds)} in all"
        yield "steps", f"{time.steps:,}{whole}"
    if a.goodput is not None:
        yield "goodput", f"{percent(a.goodput)} productive time"
    if isinstance(a, TrainingAssignment) and a.failures is not None:
        often = a.failures
        yield "failures", (
            f"one every {show_seconds(often.seconds_between)}; a {show_bytes(often.checkpoint_bytes)} checkpoint every "
            f"{show_seconds(often.checkpoint_interval_seconds)}, written in "
            f"{show_seconds(often.checkpoint_write_seconds)}; a restart takes {show_seconds(often.restart_seconds)}")
        if (waits := percent(often.repair_share)) != percent(0):
            less = "" if often.repair_share_then is None else f", {percent(often.repair_share_then)} of the time then"
            more = f"; fewest node-hours with {often.missing_spares:,} more{less}" if often.missing_spares else ""
            yield "repairs", f"{plural(a.spare_nodes, 'spare')}; waits for nodes under repair {waits} of the time{more}"
    if a.duration_days is not None:
        yield "duration", show_days(a.duration_days)
    if isinstance(a, TrainingAssignment) and (line := whole_run(a)):
        yield "whole run", line


def whole_run(a: TrainingAssignment) -> str:
    """Return what whole runs take beyond steps and failures, and the days that follow; empty where it is not known."""
    if a.whole_run is None or a.duration_interval90_days is None or a.duration_days is None:
        return ""
    (low, high), (least, most) = a.whole_run.factor90, (day * DAY for day in a.duration_interval90_days)
    return (f"{show_days(a.duration_days)} of steps and failures; whole runs took {low:.2f} to {high:.2f} times that: "
            f"{show_seconds(least)} to {show_seconds(most)}, the step's interval included")


def _step(time: Time, lacks: str = "of it by this method") -> Iterator[tuple[str, str]]:
    low, high = (show_seconds(s) for s in time.interval90_seconds)
    yield "compute", f"{time.model_tflops_per_gpu:,.0f} TFLOP/s/GPU, MFU {time.mfu:.3f}"
    yield "step", f"{show_seconds(time.step_seconds)}, 90% interval {low} to {high}"
    if time.evidence is not None:
        yield "evidence", held_against(time.evidence, "speed", lacks)


def _served(a: Assignment, serving: ServingFigures) -> Iterator[tuple[str, str]]:
    tokens = serving.output_tokens_per_second_per_gpu * a.gpus
    if serving.users is not None:
        yield "users", f"{serving.users:,.4g} at once, each waiting for the answer before the next question"
    most = "" if serving.load_share is None else f", {percent(serving.load_share)} of the most within the targets"
    yield serving.noun, (f"{serving.requests_per_second:,.4g} {serving.noun}/s{prompts_of(a)} over "
                         f"{plural(serving.replicas, 'replica')}{most}")
    if serving.writes:
        yield "output", (f"{serving.output_tokens_per_second_per_gpu:,.0f} output tokens/s/GPU, {show_count(tokens)} "
                         "tokens/s in all")
    yield from made_facts(serving.made) if serving.made else ()
    if not serving.made and (a.memory.components.kv_cache or serving.writes):  # an encoder keeps nothing that it read
        yield "cache", f"{serving.kv_tokens:,} tokens per replica, at most {most_of(serving)}"
    yield from _step(a.time, "of it with such a model on this GPU architecture")
    if a.usd_per_node_hour is not None and tokens and serving.role != "prefill":
        usd = a.usd_per_node_hour * a.nodes / 3600
        yield "cost", f"{show_usd(usd / tokens * 1e6)} per million output tokens"
    if (slots := serving.adapters) is not None:
        yield "adapters", f"{slots.count:,} of rank {slots.rank:,} at once, {show_bytes(slots.bytes_per_gpu)} on a GPU"
    yield from _settings(serving)
    if serving.nodes_by_hour is not None:
        yield "nodes", f"{', '.join(map(str, serving.nodes_by_hour))} by hour, from midnight"


def _settings(serving: ServingFigures) -> Iterator[tuple[str, str]]:
    """Yield what the engine is told other than its defaults."""
    if serving.memory_fraction is not None:
        yield "memory fraction", f"{serving.memory_fraction:g}, instead of the engine's default"
    if serving.max_batched_tokens is not None:
        yield "prefill chunk", f"{serving.max_batched_tokens:,} tokens per step, instead of the engine's default"
    if serving.prefill_delay is not None:
        yield "prompts wait", (f"up to {serving.prefill_delay:,} steps until every copy of attention has one, so that "
                               "they hold up what decodes once, together")
    if serving.max_sequences is not None:
        yield "batch limit", f"{serving.max_sequences:,} sequences per step, instead of the engine's default"


def _replayed(replayed: Replayed | None) -> Iterator[tuple[str, str]]:
    if replayed is None:
        return
    words = (f"{replayed.requests:,} requests, event by event: {met(replayed)}; steps ran "
             f"{percent(replayed.busy_share)} of the time")
    words += "" if (day := replayed.share_within_level_of_day) is None else f"; over the day {percent(day)} did"
    words += f"; {plural(replayed.preempted, 'preemption')}" if replayed.preempted else ""
    yield "replayed", words + (f"; {replayed.rejected:,} rejected" if replayed.rejected else "")
    if replayed.autoscaled is not None:
        yield "autoscaler", at_best(replayed.autoscaled)


def _cost(a: Assignment) -> Iterator[tuple[str, str]]:
    held = plural(a.nodes, "node") + (f" + {a.spare_nodes:,} spare" if a.spare_nodes else "")
    if a.usd_per_node_hour is not None:
        hourly, part = listed(a) * (a.nodes + a.spare_nodes), a.serving.part_of_nodes if a.serving else None
        shared = "" if part is None else f", {percent(part)} of it, as other replicas share the nodes"
        each = f" at {listed(a):,.2f} USD/h" if len(a.kinds_of_nodes) == 1 else ""
        yield "price", f"{held}{each}{shared}: {hourly:,.2f} USD/h"
    yield from [("offer", a.offer)] if a.offer else []
    if isinstance(a, TrainingAssignment | ServingAssignment) and a.commitment is not None:
        paid, used = (show_seconds(each * DAY) for each in (a.commitment.paid_days, a.commitment.used_days))
        yield "commitment", f"{paid} paid for ({a.commitment.term}), {used} used"
    if isinstance(a, ServingAssignment) and a.committed_usd is not None:
        yield "commitment", f"signed for: {a.committed_usd:,.2f} USD over the term of the offer"
    if a.cost_usd is not None:
        yield "cost", f"{a.cost_usd:,.2f} USD" + (f" in {MONTH_DAYS:g} days" if is_endless(a) else "") + _per_tokens(a)


def is_endless(a: Assignment) -> bool:
    """Say whether it is of a service, which does not end: its cost is that of a month."""
    return a.serving is not None and a.serving.documents is None


def _per_tokens(a: Assignment) -> str:
    return "" if (each := paid_each(a, a.cost_usd or 0.0)) is None else f", {each_in_words(*each)}"


def _purchase(a: Assignment) -> Iterator[tuple[str, str]]:
    if (bought := a.purchase) is None:
        return
    gpus = (a.nodes + a.spare_nodes) * (a.gpus + a.idle_gpus) / a.nodes
    yield "capital", f"{show_usd(bought.capex_usd)}, {show_usd(bought.capex_usd / gpus)} per GPU"
    yield "resale", f"{show_usd(bought.resale_usd)} after {bought.life_years:g} years"
    yield "per month", f"{show_usd(sum(bought.usd_per_month.values()))}: " + ", ".join(
        f"{name} {show_usd(usd)}" for name, usd in bought.usd_per_month.items() if usd)
    yield "running", f"{show_usd(bought.opex_usd_per_month)} of that per month (electricity to staff)"
    yield "per hour", (f"{show_usd(bought.usd_per_useful_gpu_hour)} per useful GPU-hour with the nodes "
                      f"{bought.utilization:.0%} in use")
