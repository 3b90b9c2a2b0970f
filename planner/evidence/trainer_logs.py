"""What Hugging Face's Trainer says of a run: printed, or in its `trainer_state.json` or `all_results.json`.

Formats: transformers TrainerState and its progress bar; of memory also swift/trainers/patcher.py and
axolotl/core/trainers/base.py. ms-swift's `logging.jsonl` (the former) and LLaMA-Factory's `trainer_log.jsonl`
(llamafactory/train/callbacks.py) have an entry a line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from planner.errors import InputError

_HELD = (("'memory(GiB)':", True), ("'memory/max_allocated (GiB)':", False))
"""What trainers built on Hugging Face's print of memory, and whether it is what is reserved."""
_SEEN = "num_input_tokens_seen"
_EXACT = 100
"""One part of so many is all that the tokens between two entries may differ from those of whole steps."""
_BAR = re.compile(r"\b(\d{1,9})/\d{1,9} \[([\d:]{4,12})<")
"""Of tqdm: 10/300 [00:12<05:48, 1.20s/it]."""
_AT = "global_step/max_steps"
_ENTRY = ("loss", _SEEN, "train_runtime", "train_steps_per_second", "train_samples_per_second", "train_speed(s/it)",
          "train_speed(iter/s)", *(name for name, _ in _HELD))
_DAYS = re.compile(r"(?:(\d{1,5}) days?, )?(\d{1,5}:\d{2}(?::\d{2})?)")
"""Of a clock: 05:48, 1:05:36, or 9 days, 21:16:28."""
_HALF = 0.0005
"""Rates of the summary have three digits after the point."""
LEAST_LOGGED = 3
"""Entries of a log whose differences are steps."""
SHOWN = 100
"""Seconds that lie between two readings of a clock that shows whole ones."""


def figure(text: str) -> float | None:
    """Return the number that a text begins with; none where it begins with none."""
    try:
        return float(text.strip().split()[0].partition("[")[0].replace(",", ""))
    except (ValueError, IndexError):
        return None


def trainer(text: str) -> Iterator[Mapping[str, float]]:
    """Yield what a Trainer's run says of its steps and of memory: printed, or as the `log_history` of its state.

    Each entry has the seconds since the start where tokens are counted (include_num_input_tokens_seen, as launch files
    have it), or stands beside a clock: that of the progress bar, or of the frameworks' own files. Else the summary at
    the end is all there is, with start, compilation and evaluation in it.
    """
    entries = _history(text) or _lines(text) or _entries(text)
    for entry in entries:
        for name, reserved in _HELD:
            if name in entry:
                yield {"peak_gib": entry[name], **({"reserved": 1} if reserved else {})}
    yield from _steps(entries)


def _entries(text: str) -> list[dict[str, float]]:
    """Return the entries as they are printed, each with the step and the clock of the progress bar beside it.

    The bar is drawn again after an entry. Where it does not grow from each entry to the next (standard output is
    buffered, or evaluations have bars of their own), it says of none at which step it was.
    """
    entries: list[dict[str, float]] = []
    stood: list[tuple[float, float]] = []
    bar, is_fresh = (0.0, 0.0), False
    for piece in text.replace("\r", "\n").split("\n"):
        before, brace, _ = piece.partition("{'")
        if shown := _BAR.findall(before):
            first, *_, bar = [(float(step), _clock(clock) or 0.0) for step, clock in (shown[0], *shown)]
            stood[-1:], is_fresh = [first] if is_fresh else stood[-1:], False
        if brace and (said := {name: found for name in _ENTRY if (
                found := _printed(_value(piece, name))) is not None}):
            entries.append(_entry({**said, _AT: _value(piece, _AT).strip(" '}")}))
            stood.append(bar)
            is_fresh = True
    logged = [at for at, entry in enumerate(entries) if "loss" in entry]
    if all(0 < stood[one][0] < stood[other][0] for one, other in pairwise(logged)):
        for at in logged:
            step, clock = stood[at]
            entries[at].setdefault("step", step)
            if "train_runtime" not in entries[at]:
                entries[at]["clock"] = clock
    return entries


def _steps(entries: Sequence[Mapping[str, float]]) -> Iterator[Mapping[str, float]]:
    """Yield the seconds of the steps between entries, or where these do not say them the mean of all.

    Of a log that is cut off before its summary, and says at which step no entry is, the tokens between them stand for
    the steps.
    """
    ends = [entry for entry in entries if entry.get("train_steps_per_second", 0.0) > 0]
    logged = [entry for entry in entries if "loss" in entry and "train_runtime" in entry]
    shown = [] if len(logged) > LEAST_LOGGED else _readings(entries)
    each = round(sum(e["train_steps_per_second"] * e.get("train_runtime", 0.0) for e in ends) / max(1, len(logged)))
    if len(logged) > LEAST_LOGGED:
        for before, after in pairwise(logged):
            took, steps = after["train_runtime"] - before["train_runtime"], after.get("step", 0) - before.get("step", 0)
            if "step" in after and "step" in before:
                if took > 0 and steps > 0:  # two processes wrote the file, or a later run went on
                    yield {"step_time_s": took / steps}
            elif ends:
                yield {"step_time_s": took / max(1, each)}
            else:
                yield {"between_s": took, "tokens": after.get(_SEEN, 0.0) - before.get(_SEEN, 0.0)}
    elif len(shown) > 1:
        for (step, clock), (later, then) in pairwise(shown):
            yield {"step_time_s": (then - clock) / (later - step)}
    else:
        for end in ends:
            steps = end.get("step", 0.0) if "train_runtime" in end else 0.0
            yield {"step_time_s": end["train_runtime"] / steps} if steps else {
                "steps_per_s": end["train_steps_per_second"], "rounded_samples_per_s": end.get(
                    "train_samples_per_second", 0.0)}


def _readings(entries: Sequence[Mapping[str, float]]) -> list[tuple[float, float]]:
    """Return steps and what a clock of whole seconds showed at them, so far apart that a second does not count.

    All of a shorter run is one piece; a clock that goes back is that of another run, which ends them.
    """
    seen = [(entry["step"], entry["clock"]) for entry in entries if "clock" in entry and entry.get("step", 0.0) > 0]
    found = seen[:1]
    for step, clock in seen[1:]:
        if clock < found[-1][1] or step < found[-1][0]:
            break
        if clock - found[-1][1] >= SHOWN and step > found[-1][0]:
            found.append((step, clock))
    whole = seen[-1:] if seen and seen[-1][0] > seen[0][0] and seen[-1][1] > seen[0][1] else []
    return found if len(found) > 1 else found + whole


def with_steps(steps: Sequence[Mapping[str, float]], tokens: int, batch: int, path: Path) -> list[Mapping[str, float]]:
    """Return steps, where a log has what lies between entries, by the tokens that one of the plan has.

    A rate of steps, three digits after the point, is read from that of samples where both agree on the plan's batch.
    Raises InputError where so many tokens are no whole number of steps, as of samples that are not packed.
    """
    found: list[Mapping[str, float]] = []
    for step in steps:
        if "between_s" in step:
            many = step["tokens"] / max(tokens, 1)
            whole = round(many)
            if whole < 1 or _EXACT * abs(many - whole) > whole:
                raise InputError("it was cut off before its summary, and does not say how many steps lie between two "
                                 "entries: take the trainer_state.json of a checkpoint", file=str(path))
            found.append({"step_time_s": step["between_s"] / whole})
        elif "steps_per_s" in step:
            rate, exact = step["steps_per_s"], step["rounded_samples_per_s"] / max(batch, 1)
            found.append({"step_time_s": 1 / (exact if exact and abs(exact - rate) <= _HALF else rate)})
        else:
            found.append(step)
    return found


def _history(text: str) -> list[dict[str, float]]:
    """Return the entries of a Trainer's state, or of its results alone; none where the text is neither."""
    if text.lstrip()[:1] != "{":
        return []
    try:
        state = json.loads(text)
    except ValueError:
        return []
    history = state.get("log_history", [state]) if isinstance(state, dict) else None
    return [{name: float(value) for name, value in entry.items() if isinstance(value, int | float)}
            for entry in (history if isinstance(history, list) else ()) if isinstance(entry, dict)]


def _lines(text: str) -> list[dict[str, float]]:
    """Return the entries of a file that has one a line, each with its step and its seconds since the start."""
    found: list[dict[str, float]] = []
    for line in text.splitlines() if text.lstrip()[:1] == "{" else ():
        try:
            entry = json.loads(line)
        except ValueError:
            return []
        if isinstance(entry, dict) and ("loss" in entry or "train_steps_per_second" in entry):
            found.append(_entry(entry))
    return found


def _entry(said: Mapping[str, object]) -> dict[str, float]:
    entry = {name: float(value) for name, value in said.items() if isinstance(value, int | float)}
    words = str(said.get("current_steps") or said.get(_AT) or "").partition("/")[0]
    if words.isdecimal():
        entry["step"] = float(words)
    if "train_runtime" not in entry:
        entry |= _since(entry, str(said.get("elapsed_time", "")))
    return {**entry, **{f"'{name}':": entry[name] for name in ("memory(GiB)",) if name in entry}}


def _since(entry: Mapping[str, float], clock: str) -> dict[str, float]:
    """Return the seconds since the start, by the mean speed so far, or what a clock of whole ones shows."""
    if entry.get("throughput", 0.0) > 0 and "total_tokens" in entry:
        return {"train_runtime": entry["total_tokens"] / entry["throughput"]}
    if "step" in entry and "train_speed(s/it)" in entry:
        return {"train_runtime": entry["train_speed(s/it)"] * entry["step"]}
    if "step" in entry and entry.get("train_speed(iter/s)", 0.0) > 0:
        return {"train_runtime": entry["step"] / entry["train_speed(iter/s)"]}
    shown = _clock(clock)
    return {} if shown is None else {"clock": shown}


def _clock(text: str) -> float | None:
    """Return the seconds that a clock shows; none where it is none."""
    if (shown := _DAYS.fullmatch(text)) is None:
        return None
    seconds = 0
    for part in shown[2].split(":"):
        seconds = 60 * seconds + int(part)
    return float(86_400 * int(shown[1] or 0) + seconds)


def _value(line: str, name: str) -> str:
    """Return what follows a name of a mapping as it is printed."""
    return line.partition(name if name.startswith("'") else f"'{name}':")[2].split(",")[0]


def _printed(text: str) -> float | None:
    """Return a value of a mapping as it is printed, which Transformers 5 has as a word."""
    return figure(text.replace("'", " ").replace("}", " "))
