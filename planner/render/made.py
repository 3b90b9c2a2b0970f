"""Images or clips that are made: whether it fits and how long one takes, in words."""

from __future__ import annotations

from collections.abc import Iterator

from planner.answer.assignment import Assignment
from planner.answer.level import Made
from planner.render.verdict import verdict
from planner.units import plural, show_bytes, show_seconds


def made_sentence(a: Assignment, made: Made, asked: float | None) -> str:
    """Return whether one way to make images or clips fits, and how long one takes; asked: a rate that is too much."""
    peak = f"{show_bytes(a.memory.peak_bytes)} of {show_bytes(a.memory.usable_bytes)} while it {_worst(made)}s"
    fits = "Tight, fits only at even odds" if a.memory.fits == "tight" else verdict(a.memory).capitalize()
    low, high = (show_seconds(seconds) for seconds in made.interval90_seconds_each)
    one = made.noun[:-1]
    speed = f"{show_seconds(made.seconds_each)} {'an' if one == 'image' else 'a'} {one} (90% interval {low} to {high})"
    if asked is None or a.serving is None:
        return f"{fits}: {peak}; {speed}"
    return (f"{fits}: {peak}; {speed}; {asked:,.4g} {made.noun}/s are too many: about "
            f"{a.serving.requests_per_second:,.4g} are made, and the queue grows")


def _worst(made: Made) -> str:
    return max(made.bytes, key=lambda moment: made.bytes[moment])


def made_facts(made: Made) -> Iterator[tuple[str, str]]:
    """Yield how images or clips are made, and where bytes and seconds go."""
    frames = f" x {made.frames} frames" if made.frames > 1 else ""
    passes = "1 pass" if made.passes == 1 else f"{made.passes} passes"
    yield "each", (f"{made.resolution}{frames}, {plural(made.steps, 'step')} of {passes}: "
                   f"{show_seconds(made.seconds_each)}, {plural(made.batch, made.noun[:-1])} a call")
    split = [f"{words} {count}" for words, count in (
        ("guidance over", made.cfg), ("Ulysses", made.ulysses), ("ring", made.ring), ("PipeFusion", made.pipefusion))
        if count > 1]
    host = {"none": "all parts on the GPU", "model": "parts wait on the host while others work",
            "sequential": "every block comes from the host"}[made.offload]
    yield "run", ", ".join([host, *(["VAE by tiles"] if made.vae == "tiled" else []), *split])
    yield "seconds", ", ".join(f"{part} {show_seconds(seconds)}" for part, seconds in made.seconds.items() if seconds)
    yield "peaks", ", ".join(f"{moment} {show_bytes(size)}" for moment, size in made.bytes.items())
