"""Several jobs in one sentence, "pretrain 7B on 1T tokens, then serve 8B at 5 rps on 4 H100", as a portfolio."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from planner.catalog.load import Catalog
from planner.catalog.sized import size_of
from planner.cli.amounts import Amount
from planner.cli.not_understood import decisive, noted
from planner.cli.phrases import PHRASES
from planner.cli.plain_words import figure
from planner.cli.read_from import places_of
from planner.cli.read_words import Sentence
from planner.cli.sentence import spoken
from planner.cli.told import Told
from planner.cli.written import words_of
from planner.errors import InputError
from planner.scenario.flags import FLAGS
from planner.units import SECONDS
from planner.units.reading import parse_count

AMOUNTS = frozenset(("tokens", "samples", "steps", "rate", "users", "daily-users", "concurrency"))
"""Flags of which every job has one."""
SHARED = frozenset(("on", "own", "provider", "region", "terms", "budget", "max-power"))
"""Flags of all jobs together."""
BEGINS = ("pretrain", "pre-train", "train", "finetune", "fine-tune", "tune", "serve", "host", "deploy", "lora", "qlora",
          "dpo", "grpo", "sft", "pretrains", "trains", "finetunes", "fine-tunes", "tunes", "serves", "hosts", "deploys")
"""Words that a job begins with."""
YEAR = 52 * 7 * 86400.0
"""Seconds of the horizon that jobs in words have."""
_DISTILLS = re.compile(r"\b(?:distill?|distilling) ")
_JOBS = re.compile(r"\b(?:two|three|four|five|\d) (?:models|services|jobs|workloads|use cases|teams|runs|trainings|"
                   r"projects|experiments)\b", re.IGNORECASE)
_ARTICLES = ("a", "an", "the", "full", "continued", "of", "to", "for", "on")
_FRONT = re.compile(r"^(?:[,:]|\b(?:and|then|a|an|the|plus|also)\b|\s)+")
_TRAINED = 10**6
"""Tokens from which they are all that is trained on, and no length."""
_PIECES = re.compile(r"[,;:]\s|\band\b|\bthen\b|\bplus\b")
_BEHIND = re.compile(r"(?:[,;]|\b(?:and|then|does|the|one|first|second|third|fourth|other|another|last|team)\b|\s)+$",
                     re.IGNORECASE)


def portfolio_of(args: Sequence[str], catalog: Catalog, told: Told | None = None) -> str | None:
    """Return a sentence of several jobs as what a file of a portfolio holds, on one line; none of any other.

    Hardware, and what limits all jobs, is theirs together wherever the sentence names it. told: is told what was
    assumed. Raises InputError for what is left unread of such a sentence.
    """
    text = " ".join(args)
    told = told or Told(left_out=[])
    told.part = True
    if (distilled := _distilled(text, catalog, told)) is not None:
        return distilled
    before, clauses = _parted(text, catalog, told)
    if len(clauses) < 2:
        return None
    try:
        shared = _shared(before, catalog)
        read = [_flags(clause, catalog, told) for clause in clauses]
    except InputError:
        return None
    jobs: list[dict[str, object]] = []
    ends = {"deadline": shared["deadline"]} if "deadline" in shared else {}
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
        jobs.append({"name": _name(clause, str(model), [str(job["name"]) for job in jobs]), **ends, **job})
    if "/" in str(budget := whole.get("budget", "")):
        amount, _, time = str(budget).partition("/")
        money, share = amount.partition(" "), (SECONDS.factor(time) or YEAR) / YEAR
        whole["budget"] = f"{figure(parse_count(money[0], 'budget') / share)} USD"
        told.assumed.append(f"{budget} is a budget of {whole['budget']} for the year that is planned")
    return json.dumps({**whole, "jobs": jobs})


def _parted(text: str, catalog: Catalog, told: Told) -> tuple[str, list[str]]:
    """Return what all jobs of a sentence have, and each of them: by what is trained, by its verbs, or by models."""
    before, clauses = _trained(text, catalog)
    if not clauses:
        before, *clauses = _clauses(text)
    if len(clauses) < 2:
        before, clauses = _listed(text, catalog)
    return (before, clauses) if len(clauses) > 1 else _paired(text, catalog, told)


def _distilled(text: str, catalog: Catalog, told: Told) -> str | None:
    """Return the distillation of one model into another as its two jobs: what the teacher reads once, and what the
    student trains on. None of another sentence.
    """
    if (said := _DISTILLS.search(text.lower())) is None:
        return None
    teacher, _, rest = text[said.end():].partition(" into ")
    front, back = _flags(f"run {teacher}", catalog, told), _flags(f"train {rest}", catalog, told)
    models = front.get("model", ""), back.get("model", "")
    if "tokens" not in back or not all(models) or any("," in name for name in models):
        return None
    student = _of_its_family(*models, catalog)
    length = catalog.recipes.tuning.sequence_length
    documents = max(1, parse_count(back["tokens"], "tokens") // length)
    told.assumed.append(f"{models[0]} reads the {back['tokens']} tokens once, in sequences of {length:,}, and "
                        f"{student} trains on them; keeping what the teacher says of each token is not counted. "
                        "Answers that the student writes itself are --method on-policy-distillation")
    shared = {name.replace("-", "_"): value for name, value in {**front, **back}.items() if name in SHARED}
    ends = {"deadline": back["deadline"]} if "deadline" in back else {}
    return json.dumps({**shared, "jobs": [
        {"name": f"teacher {models[0]}", "model": models[0], "documents": documents, "input": length,
         "output": 1, **ends},
        {"name": f"student {student}", "model": student, "method": "full", "tokens": back["tokens"], **ends}]})


def _of_its_family(teacher: str, size: str, catalog: Catalog) -> str:
    """Return the model of a size alone that is of the teacher's family; the size where there is none."""
    known = catalog.known_model(teacher)
    family = re.split(r"-\d+(?:\.\d+)?b", known.name if known else teacher)[0]
    return f"{family}-{size}" if f"{family}-{size}" in catalog.names("models") else size


def _chained(words: Sentence, load: Amount, told: Told) -> tuple[str, list[str]]:
    """Return what services have that answer one load together, one behind the other, and each of them with it."""
    rest = [amount.text for amount in words.amounts if amount is not load]
    if set(words.flags) - {"model", "on", "own", "region", "provider", "terms"} or decisive(words) or words.excluded:
        return "", []
    told.left_out = [*(told.left_out or ()), *noted(words)]
    if rest:
        told.assumed.append(f"{', '.join(rest)} is of all of them together and no target of one: give each job its own")
    whole = ", ".join(f"on {name}" if flag in ("on", "own") else name for flag, names in words.flags.items()
                      if flag != "model" for name in names)
    return whole, [f"serve {model} at {load.text}" for model in words.flags["model"]]


def _paired(text: str, catalog: Catalog, told: Told) -> tuple[str, list[str]]:
    """Return what all services have whose models stand before their loads, and each of them with its load.

    As in "serve mistral 7b and llama 3.1 70b, 10 rps and 2 rps, on H100s".
    """
    words = Sentence(words_of([text]), catalog).read()
    loads = [amount for amount in words.amounts if amount.kind in ("users", "requests", "rate")]
    models = words.flags.get("model", [])
    if len(models) > 1 and len(loads) == 1 and {"train", "tune", "versus", "rent", "why-not"}.isdisjoint(words.asks):
        return _chained(words, loads[0], told)
    if len(models) < 2 or len(loads) != len(models) or not {"serve", "hold"} & words.asks or "versus" in words.asks:
        return "", []
    whole = " ".join(f"on {name}" for name in words.flags.get("on", []))
    others = [amount for amount in words.amounts if amount not in loads]
    if others or set(words.flags) - {"model", "on"}:
        return "", []
    return whole, [f"serve {model} at {load.text}" for model, load in zip(models, loads, strict=True)]


def _trained(text: str, catalog: Catalog) -> tuple[str, list[str]]:
    """Return what all runs have that are listed by their models, and each of them with how much it trains on.

    As in "a 7B pretrain on 200B tokens, a 13B on 1B tokens, on our 64 H100": each number is of the model before it.
    """
    words = Sentence(words_of([_JOBS.sub(" ", text)]), catalog).read()
    models = [min(places) for value in words.flags.get("model", []) if (places := places_of(value))]
    models += [min(each.places) for each in words.amounts if each.places and size_of(each.value.lower()) and (
        each.kind == "size" or (not each.noun and each.value[-1:] == "B"))]
    work = [max(each.places) for each in words.amounts if not each.per and each.places and not each.of_each and (
        each.kind == "samples" or (each.kind == "tokens" and parse_count(each.value, "tokens") >= _TRAINED))]
    alternate = all(here < there for here, there in pairwise(each for pair in zip(
        sorted(models), sorted(work), strict=False) for each in pair))
    loads = {"users", "requests", "rate", "streams"} & {each.kind for each in words.amounts}
    if len(work) < 2 or len(work) != len(models) or not alternate or loads or words.asks & {"versus", "rent", "better"}:
        return "", []
    begins = min(models)
    while begins and (words.words[begins - 1] in BEGINS or words.words[begins - 1] in _ARTICLES):
        begins -= 1
    ends = [begins, *(end + 1 for end in sorted(work))]
    clauses = [" ".join(words.words[begin:end]) for begin, end in pairwise(ends)]
    whole = " ".join((*words.words[:begins], ",", *words.words[ends[-1]:]))
    return whole, [_FRONT.sub("", clause) for clause in clauses]


def _listed(text: str, catalog: Catalog) -> tuple[str, list[str]]:
    """Return what all services have that are listed by their models, and each of them with its load.

    As in "serve llama 70b at 4 requests a second, bge-large at 200 a second".
    """
    before, clauses, behind = "", list[str](), ""
    for piece in _PIECES.split(text):
        words = Sentence(words_of([piece]), catalog).read() if piece.strip() else None
        if words is None:
            continue
        models, loads = words.flags.get("model", []), bool(words.amounts) and not set(words.flags) & SHARED
        if models and all(catalog.known_model(name) or catalog.known_diffusion(name) for name in models) and (
                len(models) == 1 and words.amounts):
            clauses.append(piece)
        elif clauses and loads and "money" not in {amount.kind for amount in words.amounts}:
            clauses[-1] += f" {piece}"
        elif clauses:
            behind += f" {piece}"
        else:
            before += f" {piece}"
    asks = Sentence(words_of([before or text]), catalog).read().asks
    if len(clauses) < 2 or not asks & {"serve", "hold", "batch"} or asks & {"versus", "rent"}:
        return "", []
    return f"{_JOBS.sub('', before)} {behind}", [f"serve {clause}" for clause in clauses]


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


def _flags(clause: str, catalog: Catalog, told: Told) -> Mapping[str, str]:
    read = spoken([clause], catalog, "plan", {}, told) if words_of([clause]) else None
    words = read[1:] if read else []
    return {word[2:]: words[at + 1] for at, word in enumerate(words[:-1]) if word.startswith("--")}


def _shared(before: str, catalog: Catalog) -> Mapping[str, str]:
    """Return what stands before the jobs and is of all of them: hardware, a provider, a budget."""
    try:
        return _flags(before, catalog, Told(left_out=[]))
    except InputError:  # "for our 3 teams"
        read = Sentence(words_of([before]), catalog).read()
        return {flag: ",".join(values) for flag, values in read.flags.items() if flag in SHARED}


def _name(clause: str, model: str, taken: Sequence[str]) -> str:
    words = words_of([clause])
    first = next((word for word in words if word in BEGINS), words[0] if words[:1] and words[0] in PHRASES else "job")
    name = f"{first} {model}"
    return name if name not in taken else f"{name} {len(taken) + 1}"
