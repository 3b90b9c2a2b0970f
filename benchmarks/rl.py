"""The section of docs/validation.md on reinforcement learning: published steps, phases and peaks, sources left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.first import first
from benchmarks.table import ERRORS, error_cells, table
from planner.answer.validation import Entry
from planner.catalog.load import Catalog
from planner.catalog.posttraining import PostTrainingLaw
from planner.evidence.compare import compare
from planner.evidence.kinds import EvidenceFile
from planner.evidence.posttraining import RlRow
from planner.evidence.reading import read_evidence

QUANTITIES = ("step_s", "gen_s", "actor_update_s", "peak_mem_gib")
FIRST = {"rl-step": "step_s", "rl-generation": "gen_s", "rl-update": "actor_update_s", "rl-memory": "peak_mem_gib"}


@dataclass(frozen=True, slots=True)
class Fitted:
    """What was fitted on a source, and what would be assumed without it: what other frameworks do, or nothing."""

    law: Mapping[str, float]
    framework: str
    own: Mapping[str, Any]
    """Of the framework."""
    stack: Mapping[str, float] = field(default_factory=dict)
    """Of its training stack."""
    trained: str = ""
    """The stack's name, where it is not the framework's."""


SOURCES = {
    # without graphs as the logs of the two others have it, by the same fit; the stack is as what it is like, whose
    # layers of 1.2 ms launch 105 kernels with quantized weights, dropout and casts, and 66 without
    "eric-haibin-lin/verl-data": Fitted(
        {"eager_layer": 1.1e-3, "eager_sequence": 2e-5, "phase": 0.0}, "verl", {"adapter_sync": 0.0},
        {"adapter_passes": 7.0, "launch_unit": 7.5e-4, "elementwise": 3.0}, "verl-fsdp"),
    "yushengsu-thu/verl_training_log": Fitted({"eager_layer": 8e-4, "eager_sequence": 8e-5}, "verl", {}),
    "diqiuzhuanzhuan/verldata": Fitted({"eager_layer": 9e-4, "eager_sequence": 2e-5}, "verl", {"reshard": 10e9}),
    # what its code says stays; FlashAttention 3 reaches the rate of the GPU, 2 that of the stack it is like
    "PrimeIntellect-ai/prime-rl": Fitted({}, "prime-rl", {}, {
        "attention_kernel.hopper": 1.0, "attention_kernel.blackwell": 0.19, "step_overhead": 0.033}),
    "deepspeedai/DeepSpeedExamples": Fitted({}, "deepspeed-chat", {"pace": 1.0}),
    # broadcasts and the host's share of a step over several machines are as others have published them
    "NVIDIA-NeMo/RL": Fitted({}, "nemo-rl", {"reshard": 2e9})}


def without(law: PostTrainingLaw, fitted: Fitted) -> PostTrainingLaw:
    """Return the constants as they would be without a source, to which its framework is new."""
    own = law.frameworks[fitted.framework].model_copy(update=dict(fitted.own))
    unseen = {name: residue.model_copy(update={"by": {other: runs for other, runs in residue.by.items()
                                                      if other != fitted.framework}})
              for name, residue in (("step", law.step), ("phases", law.phases), ("memory", law.memory))}
    return law.model_copy(update={**fitted.law, "frameworks": {**law.frameworks, fitted.framework: own}, **unseen})


def is_guessed(entry: Entry) -> bool:
    """Say whether a row's answers are taken to be as long as such answers usually are."""
    return any(said.startswith("response_len_mean") for said in entry.assumed)


def left_out(read: EvidenceFile, source_of: Mapping[str, str]) -> list[Entry]:
    """Return the entries of every source by constants without it, with the intervals of a framework without runs."""
    made = list[Entry]()
    for source, fitted in SOURCES.items():
        # a copy, as catalogs of the same files share what they hold
        catalog = copy(Catalog())
        if fitted.stack:
            catalog = catalog.changed({("stacks", fitted.trained or fitted.framework): fitted.stack})
        vars(catalog)["posttraining_law"] = without(catalog.posttraining_law, fitted)
        mine = replace(read, rows=tuple(row for row in read.rows if source_of[row.id] == source), unread=())
        made += compare(mine, catalog).entries
    return made


def rl(path: Path) -> Iterator[str]:
    """Yield the lines of the section."""
    read = read_evidence(path)
    catalog = Catalog()
    found = compare(read, catalog)
    guessed = {entry.id for entry in found.entries if is_guessed(entry)}
    runs = {row.id: row.run for row in read.rows if isinstance(row, RlRow)}
    frameworks = {name: run.framework or "" for name, run in runs.items()}
    source_of = {name: (run.source or "").partition("@")[0] for name, run in runs.items()}
    yield from ("", "## Reinforcement learning", "", f"{len({entry.id for entry in found.entries})} rows have a "
                f"prediction, {len(found.skipped)} are skipped. First each source left out: what was fitted on it is "
                "as other frameworks have it, or nothing, and intervals are those of a framework without runs.", "")
    yield from _by_framework(left_out(read, source_of), frameworks)
    yield from ("", "Runs that came in later, as they were predicted before anything was changed for them, in the "
                "intervals of today:", "")
    yield from first(found.entries, FIRST, catalog)
    yield from ("", "The same in-sample: constants were chosen beside these rows.", "")
    stated = [entry for entry in found.entries if entry.id not in guessed]
    yield from _by_framework(stated, frameworks)
    yield from ("", "Rows that state neither a mean answer nor its tokens, which is assumed (their intervals are those "
                "of a framework without runs):", "")
    yield from _by_framework([entry for entry in found.entries if entry.id in guessed], frameworks)


def _by_framework(entries: Sequence[Entry], frameworks: Mapping[str, str]) -> Iterator[str]:
    """Yield a table of each quantity, by framework and of all."""
    groups: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries:
        if entry.quantity in QUANTITIES:
            for name in (frameworks[entry.id], "all"):
                groups.setdefault((entry.quantity, name), []).append(entry)
    yield from table(("quantity", "framework", *ERRORS), [
        [*key, *error_cells(groups[key])]
        for key in sorted(groups, key=lambda key: (QUANTITIES.index(key[0]), key[1]))])
