"""Several jobs in one sentence, "pretrain 7B on 1T tokens, then serve 8B at 5 rps on 4 H100", as a portfolio."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence

from planner.catalog.load import Catalog
from planner.cli.phrases import PHRASES
from planner.cli.sentence import spoken, words_of
from planner.errors import InputError
from planner.scenario.flags import FLAGS

AMOUNTS = frozenset(("tokens", "samples", "steps", "rate", "users", "daily-users", "concurrency"))
"""Flags of which every job has one."""
SHARED = frozenset(("on", "own", "provider", "region", "terms", "budget", "max-power"))
"""Flags of all jobs together."""
BEGINS = ("pretrain", "pre-train", "train", "finetune", "fine-tune", "tune", "serve", "host", "deploy", "lora", "qlora",
          "dpo", "grpo", "sft")
"""Words that a job begins with."""
_BEHIND = re.compile(r"(?:,|;|\band\b|\bthen\b|\s)+$")


def portfolio_of(args: Sequence[str], catalog: Catalog) -> str | None:
    """Return a sentence of several jobs as what a file of a portfolio holds, on one line; none of any other.

    Hardware, and what limits all jobs, is theirs together wherever the sentence names it.
    """
    before, *clauses = _clauses(" ".join(args))
    if len(clauses) < 2:
        return None
    try:
        shared = _flags(before, catalog)
        read = [_flags(clause, catalog) for clause in clauses]
    except InputError:
        return None
    jobs: list[dict[str, object]] = []
    whole: dict[str, object] = {name.replace("-", "_"): value for name, value in shared.items() if name in SHARED}
    for clause, flags in zip(clauses, read, strict=True):
        job: dict[str, object] = {
            name.replace("-", "_"): value for name, value in flags.items()
            if FLAGS.get(name.replace("-", "_"), "").startswith("workload.") or name == "deadline"}
        model = job.setdefault("model", jobs[-1].get("model") if jobs else None)
        if not model or "," in str(model) or AMOUNTS.isdisjoint(flags):
            return None
        if job.get("method") == "inference":
            del job["method"]
        whole |= {name.replace("-", "_"): value for name, value in flags.items() if name in SHARED}
        jobs.append({"name": _name(clause, str(model), [str(job["name"]) for job in jobs]), **job})
    return json.dumps({**whole, "jobs": jobs})


def with_jobs(args: Sequence[str], catalog: Catalog) -> list[str] | None:
    """Return the arguments of --jobs with jobs in words, and no file, as a portfolio; none of others."""
    if "--jobs" not in args[:-1]:
        return None
    at = list(args).index("--jobs")
    if os.path.exists(args[at + 1]) or (told := portfolio_of([args[at + 1]], catalog)) is None:
        return None
    rest = [*args[:at], *args[at + 2:]]
    if "--horizon" in rest[:-1]:
        at = rest.index("--horizon")
        told = json.dumps({"horizon": rest[at + 1], **json.loads(told)})
        del rest[at:at + 2]
    return [rest[0], told, *rest[1:]]


def _clauses(text: str) -> Iterator[str]:
    """Yield what stands before the first word that begins a job, and each job."""
    starts = [match.start() for match in re.finditer(r"[\w-]+", text) if match[0].lower() in BEGINS]
    # "finetune 70b lora" is one job
    starts = [at for at, before in zip(starts, [0, *starts], strict=False) if at == 0 or not before or re.search(
        r"[,;]|\band\b|\bthen\b", text[before:at])]
    for begin, end in zip([0, *starts], [*starts, len(text)], strict=True):
        yield _BEHIND.sub("", text[begin:end])


def _flags(clause: str, catalog: Catalog) -> Mapping[str, str]:
    read = spoken([clause], catalog, "plan", {}, []) if words_of([clause]) else None
    words = read[1:] if read else []
    return {word[2:]: words[at + 1] for at, word in enumerate(words[:-1]) if word.startswith("--")}


def _name(clause: str, model: str, taken: Sequence[str]) -> str:
    first = next(iter(words_of([clause])), "job")
    name = f"{first if first in PHRASES or first in BEGINS else 'job'} {model}"
    return name if name not in taken else f"{name} {len(taken) + 1}"
