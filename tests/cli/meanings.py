"""What a sentence is read as, by the keys of `wordings`, and how that differs from what was meant."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from planner.catalog.load import Catalog
from planner.cli.sentence import spoken
from planner.cli.several import portfolio_of
from planner.cli.told import Told
from planner.errors import InputError
from planner.scenario.hardware_names import meant_by
from planner.scenario.resolve import format_of
from planner.scenario.words import method_named, named
from planner.units import SECONDS, parse
from planner.units.reading import parse_count
from tests.cli.wordings import Meaning, Question

FREE = frozenset(("verb", "engine", "stack", "objective", "max-nodes", "layout"))
"""Keys of which a way to say something may have one more: a stack that is named, a node that one machine is."""


def command_of(text: str, catalog: Catalog) -> list[str]:
    """Return the command that a sentence is read as, as the command line does. Raises InputError."""
    jobs = portfolio_of([text], catalog, Told(left_out=[]))
    return ["plan", jobs] if jobs is not None else spoken([text], catalog, told=Told(left_out=[])) or []


def meaning_of(command: Sequence[str], catalog: Catalog) -> Meaning:
    """Return what a command means, by the keys that `wordings` has."""
    means: Meaning = {"verb": command[0]}
    waiting = list(command[1:])
    while waiting:
        flag = waiting.pop(0)
        value = waiting.pop(0) if waiting and not waiting[0].startswith("--") else ""
        name = {"own": "on", "concurrency": "users"}.get(flag[2:], flag[2:])
        means |= _READ.get(name, _other)(value, catalog) if name in _READ else _other(name, value)
    return means


def _other(name: str, value: str) -> Meaning:
    try:
        return {name.replace("mean-length", "mean_length"): float(parse_count(value))}
    except ValueError:
        return {name: value}


def _model(value: str, catalog: Catalog) -> Meaning:
    stored = {"quantization": format_of(value)} if format_of(value) else {}
    return {"model": ",".join(_called(each, catalog) for each in value.split(",")), **stored}


def _called(name: str, catalog: Catalog) -> str:
    known = catalog.known_model(name) or catalog.known_diffusion(name)
    return known.name if known is not None else name


def _hardware(value: str, catalog: Catalog) -> Meaning:
    names = value.split(",")
    try:
        meant = [meant_by(name, catalog) for name in names]
    except InputError:
        return {"hardware": value}
    gpus = [{catalog.node(node).gpu for node in each.nodes} for each in meant]
    if len(names) > 1:
        return {"compared": frozenset[str]().union(*gpus)}
    counts = {catalog.node(node).gpus for node in meant[0].nodes}
    return {"hardware": (",".join(sorted(gpus[0])), meant[0].gpus or (min(counts) if len(counts) == 1 else 0))}


def _pace(value: str, catalog: Catalog) -> Meaning:
    number, _, unit = value.partition(" ")
    return {"tpot": 1.0 / float(number) if unit == "tokens/s" else parse(value, SECONDS, "tpot", "1 s")}


def _rate(value: str, catalog: Catalog) -> Meaning:
    number, _, unit = value.replace("rps", "requests/s").replace("qps", "requests/s").partition(" ")
    number, _, per = (number + unit).partition("/")
    count = "".join(each for each in number if not each.isalpha() or each in "kM")
    return {"rate": parse_count(count) / (SECONDS.factor(per) or 1.0)}


def _time(name: str) -> Callable[[str, Catalog], Meaning]:
    return lambda value, catalog: {name: parse(value, SECONDS, name, "1 d")}


_READ: Mapping[str, Callable[[str, Catalog], Meaning]] = {
    "on": _hardware, "model": _model, "tpot": _pace, "rate": _rate,
    "method": lambda value, catalog: {"method": method_named(value)},
    "quantization": lambda value, catalog: {"quantization": named("workload.quantization", value)},
    "utilization": lambda value, catalog: {"utilization": float(value.rstrip("% ")) / 100},
    "users": lambda value, catalog: {"users": float(parse_count(value))},
    "years": lambda value, catalog: {"years": float(value)},
    "resolution": lambda value, catalog: {"resolution": f"{value}x{value}" if value.isdigit() else value},
    **{name: _time(name) for name in ("deadline", "ttft", "e2e")}}


def differs(question: Question, catalog: Catalog) -> dict[str, tuple[object, object]]:
    """Return the keys by which the command that a question is read as differs from what it means: meant, and read.

    Raises InputError where it is refused.
    """
    read = meaning_of(command_of(question.text, catalog), catalog)
    means = {key: _called(str(value), catalog) if key == "model" else value for key, value in question.means.items()}
    found = {key: (value, read.get(key)) for key, value in means.items() if not _same(value, read.get(key))}
    # what hardware is compared by, where no work is said, is one of a batch
    extra = read.keys() - means.keys() - FREE - ({"documents"} if "compared" in means else set())
    return found | ({"extra": (None, {key: read[key] for key in sorted(extra)})} if extra else {})


def _same(meant: object, read: object) -> bool:
    if isinstance(meant, float):
        return isinstance(read, float) and abs(read / meant - 1.0) < 0.03  # 8k is 8,000, and 8,192
    return meant == read
