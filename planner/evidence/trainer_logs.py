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
_BAR = re.compile(r"\b(\d{1,9})/\d{1,9} \[")
"""Of tqdm: 10/300 [00:12<05:48, 1.20s/it]."""
_ENTRY = ("loss", _SEEN, "train_runtime", "train_steps_per_second", *(name for name, _ in _HELD))
LEAST_LOGGED = 3
"""Entries of a log whose differences are steps."""


def figure(text: str) -> float | None:
    """Return the number that a text begins with; none where it begins with none."""
    try:
        return float(text.strip().split()[0].partition("[")[0].replace(",", ""))
    except (ValueError, IndexError):
        return None


def trainer(text: str) -> Iterator[Mapping[str, float]]:
    """Yield what a Trainer's run says of its steps and of memory: printed, or as the `log_history` of its state.

    Each entry has the seconds since the start where tokens are counted (include_num_input_tokens_seen, as launch files
    have it); else the last one's `train_steps_per_second` is all there is, with start and compilation in it.
    """
    entries = _history(text) or _lines(text) or _entries(text)
    for entry in entries:
        for name, reserved in _HELD:
            if name in entry:
                yield {"peak_gib": entry[name], **({"reserved": 1} if reserved else {})}
    yield from _steps(entries)


def _entries(text: str) -> list[dict[str, float]]:
    """Return the entries as they are printed, each with the step at which the progress bar stood beside it.

    The bar is drawn again after an entry. Where it does not grow from each entry to the next (standard output is
    buffered, or evaluations have bars of their own), it says of none at which step it was.
    """
    entries: list[dict[str, float]] = []
    stood: list[float] = []
    bar, is_fresh = 0.0, False
    for piece in text.replace("\r", "\n").split("\n"):
        before, brace, _ = piece.partition("{'")
        if (shown := _BAR.search(before)) is not None:
            bar = float(shown[1])
            stood[-1:], is_fresh = [bar] if is_fresh else stood[-1:], False
        if brace and (entry := {name: found for name in _ENTRY if (
                found := _printed(_value(piece, name))) is not None}):
            entries.append(entry)
            stood.append(bar)
            is_fresh = True
    logged = [at for at, entry in enumerate(entries) if "loss" in entry]
    if all(0 < stood[one] < stood[other] for one, other in pairwise(logged)):
        for at in logged:
            entries[at]["step"] = stood[at]
    return entries


def _steps(entries: Sequence[Mapping[str, float]]) -> Iterator[Mapping[str, float]]:
    """Yield the seconds of the steps between entries, or where these do not say them the mean of all.

    Of a log that is cut off before its summary, and says at which step no entry is, the tokens between them stand for
    the steps.
    """
    logged = [entry for entry in entries if "loss" in entry and "train_runtime" in entry]
    ends = [entry for entry in entries if entry.get("train_steps_per_second", 0.0) > 0]
    each = round(sum(e["train_steps_per_second"] * e.get("train_runtime", 0.0) for e in ends) / max(1, len(logged)))
    if len(logged) > LEAST_LOGGED:
        for before, after in pairwise(logged):
            took = after["train_runtime"] - before["train_runtime"]
            if "step" in after and "step" in before:
                yield {"step_time_s": took / (after["step"] - before["step"])}
            elif ends:
                yield {"step_time_s": took / max(1, each)}
            else:
                yield {"between_s": took, "tokens": after.get(_SEEN, 0.0) - before.get(_SEEN, 0.0)}
    elif ends:
        yield from ({"step_time_s": 1 / end["train_steps_per_second"]} for end in ends)


def with_steps(steps: Sequence[Mapping[str, float]], tokens: int, path: Path) -> list[Mapping[str, float]]:
    """Return steps, where a log has what lies between entries, by the tokens that one of the plan has.

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
    words = str(said.get("current_steps") or said.get("global_step/max_steps") or "").partition("/")[0]
    if words.isdecimal():
        entry["step"] = float(words)
    if "train_runtime" not in entry and entry.get("throughput", 0.0) > 0 and "total_tokens" in entry:
        entry["train_runtime"] = entry["total_tokens"] / entry["throughput"]
    elif "train_runtime" not in entry and "train_speed(s/it)" in entry and "step" in entry:
        entry["train_runtime"] = entry["train_speed(s/it)"] * entry["step"]
    return {**entry, **{f"'{name}':": entry[name] for name in ("memory(GiB)",) if name in entry}}


def _value(line: str, name: str) -> str:
    """Return what follows a name of a mapping as it is printed."""
    return line.partition(name if name.startswith("'") else f"'{name}':")[2].split(",")[0]


def _printed(text: str) -> float | None:
    """Return a value of a mapping as it is printed, which Transformers 5 has as a word."""
    return figure(text.replace("'", " ").replace("}", " "))
