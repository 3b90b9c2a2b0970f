"""Where bytes and seconds go, how fast that is, and what it costs."""

from __future__ import annotations

from planner.answer.schema import Assignment, Memory, Time
from planner.jobs.serving.assignment import MONTH_DAYS
from planner.render.figures import days, milliseconds, percent
from planner.render.page import Column, Page
from planner.units import GIB, plural, show_bytes, show_count, show_kwh, show_seconds, show_usd

_LABELS = {"kv_cache": "key-value cache", "communication_buffers": "communication buffers"}
_BAR = Column("", style="blue")
_VERDICT = {"fits": "green", "tight": "yellow", "does not fit": "red"}


def _label(name: str) -> str:
    return _LABELS.get(name, name.replace("_", " "))


def at_confidence(confidence: float | None) -> str:
    """Return ` at 95% confidence`, or nothing where the confidence is not known."""
    return f" at {confidence * 100:.4g}% confidence" if confidence else ""


def show_memory(page: Page, memory: Memory, confidence: float | None) -> None:
    """Print device memory of the worst stage by component, against what is usable."""
    page.heading(f"Memory per GPU: {memory.fits}{at_confidence(confidence)}", _VERDICT[memory.fits])
    usable = memory.usable_bytes
    rows = [(_label(name), f"{part / GIB:.2f}", percent(part / usable), page.bar(part / usable))
            for name, part in memory.components.model_dump().items() if part]
    free = usable - memory.peak_bytes
    left = "free" if free >= 0 else "missing"
    totals = {"peak, worst stage": memory.peak_bytes, left: abs(free), "usable": usable}
    rows += [(label, f"{size / GIB:.2f}", percent(size / usable), "") for label, size in totals.items()]
    page.table((Column("component"), Column("GiB", True), Column("of usable", True), _BAR), rows, totals=3)
    if memory.median is not None:
        allocated, reserved, device = (f"{size / GIB:.1f}" for size in memory.median.model_dump().values())
        page.facts([("expected", f"{allocated} GiB allocated, {reserved} reserved (PyTorch), {device} on the device "
                                 f"(nvidia-smi){_spread(memory, confidence)}")])
    outside = {"host memory": memory.host_bytes_per_node, "NVMe": memory.nvme_bytes_per_node}
    if any(outside.values()):
        page.facts([(f"{name} per node", show_bytes(size)) for name, size in outside.items() if size])


def _spread(memory: Memory, confidence: float | None) -> str:
    """Return how far above the median the asked confidence reaches."""
    if memory.median is None or confidence is None:
        return ""
    return f"; {confidence * 100:.4g}% of comparable runs stay within {memory.peak_bytes / memory.median.device:.2f}x"


def show_time(page: Page, time: Time) -> None:
    """Print the exposed seconds of a step by component."""
    page.heading("Time of a step (exposed: what overlaps is not counted)")
    step = time.step_seconds
    rows = [(_label(name), milliseconds(part, step), percent(part / step), page.bar(part / step))
            for name, part in time.components.model_dump().items() if part]
    rows.append(("step", milliseconds(step, step), percent(1.0), ""))
    page.table((Column("component"), Column("ms", True), Column("share", True), _BAR), rows, totals=1)


def show_performance(page: Page, assignment: Assignment) -> None:
    """Print speed, with its interval, and how long the work takes."""
    time = assignment.time
    low, high = (show_seconds(s) for s in time.interval90_seconds)
    whole = time.tokens_per_second_per_gpu * assignment.gpus
    each = f"{time.tokens_per_second_per_gpu:,.0f} tokens/s/GPU"
    rows = [("tokens", f"{each}, {show_count(whole)} tokens/s in all"),
            ("compute", f"{time.model_tflops_per_gpu:,.0f} TFLOP/s/GPU, MFU {time.mfu:.3f}"),
            ("step", f"{show_seconds(time.step_seconds)}, 90% interval {low} to {high}")]
    if time.steps:
        rows.append(("steps", f"{time.steps:,}"))
    if assignment.goodput is not None:
        rows.append(("goodput", f"{percent(assignment.goodput)} of the time moves the work forward"))
    if assignment.duration_days is not None:
        rows.append(("duration", days(assignment.duration_days)))
    page.heading("Performance")
    page.facts(rows)


def show_cost(page: Page, assignment: Assignment) -> None:
    """Print price, cost and energy; nothing where none is known."""
    rows = []
    held = plural(assignment.nodes, "node")
    if assignment.spare_nodes:
        held += f" + {assignment.spare_nodes:,} spare"
    if assignment.usd_per_node_hour is not None:
        hourly = assignment.usd_per_node_hour * (assignment.nodes + assignment.spare_nodes)
        part = assignment.serving.part_of_nodes if assignment.serving else None
        shared = "" if part is None else f", {percent(part)} of the price as others share them"
        rows.append(("price", f"{held} at {assignment.usd_per_node_hour:,.2f} USD/h{shared}: {hourly:,.2f} USD/h"))
    if assignment.offer:
        rows.append(("offer", assignment.offer))
    if assignment.cost_usd is not None and assignment.serving is not None:
        rows.append(("cost", f"{assignment.cost_usd:,.2f} USD in {MONTH_DAYS:g} days"))
    elif assignment.cost_usd is not None:
        per_tokens = _per_tokens(assignment, assignment.cost_usd)
        rows.append(("cost", f"{assignment.cost_usd:,.2f} USD{per_tokens}"))
    if assignment.energy_kwh is not None:
        rows.append(("energy", show_kwh(assignment.energy_kwh)))
    if rows:
        page.heading("Cost")
        page.facts(rows)


def show_purchase(page: Page, assignment: Assignment) -> None:
    """Print what is bought and what it takes a month; nothing where nothing is."""
    bought = assignment.purchase
    if bought is None:
        return
    gpus = (assignment.nodes + assignment.spare_nodes) * assignment.gpus / assignment.nodes
    page.heading("Purchase")
    page.facts([
        ("capital", f"{show_usd(bought.capex_usd)}, {show_usd(bought.capex_usd / gpus)} per GPU"),
        ("resale", f"{show_usd(bought.resale_usd)} after {bought.life_years:g} years"),
        ("a month", f"{show_usd(sum(bought.usd_per_month.values()))}: " + ", ".join(
            f"{name} {show_usd(usd)}" for name, usd in bought.usd_per_month.items() if usd)),
        ("running", f"{show_usd(bought.opex_usd_per_month)} of that a month (electricity to staff)"),
        ("an hour", f"{show_usd(bought.usd_per_useful_gpu_hour)} per useful GPU-hour with the nodes "
                    f"{bought.utilization:.0%} in use")])
    page.table((Column("bill of materials"), Column("count", True), Column("each", True), Column("USD", True)),
               [(one.item, f"{one.count:,}", show_usd(one.unit_usd), f"{one.usd:,.0f}") for one in bought.bill])


def _per_tokens(assignment: Assignment, cost_usd: float) -> str:
    time = assignment.time
    tokens = time.tokens_per_second_per_gpu * assignment.gpus * time.step_seconds * (time.steps or 0)
    return f", {show_usd(cost_usd / tokens * 1e6)} per million tokens" if tokens else ""
