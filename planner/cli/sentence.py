"""A question in a sentence, `planner does mixtral 8x7b fit on 2x a100 80gb`, as the words of a command with flags.

Every word is read as something, is one of those that say nothing, or is refused by name: none is left out unsaid.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from planner.catalog.load import Catalog
from planner.cli.meaning import asked_of
from planner.cli.phrases import FOLLOW, LEADING, noun_of
from planner.cli.read_words import Sentence
from planner.errors import InputError
from planner.units import SECONDS

BARE = frozenset(("model", "on", "own", "gpus", "seq-len"))
"""Flags that leave open what a model is to do: whether it fits is answered for every method."""
LOADS = frozenset(("users", "daily-users", "monthly-users", "rate", "concurrency", "documents", "samples", "requests",
                   "objective"))
"""Flags of a load, or of the most of it; whoever asks for a pace without one is alone."""
PLANNED = frozenset(("own", "deadline", "budget", "samples", "documents", "users", "rate", "provider", "terms"))
"""Flags that a plan alone heeds."""
PRICED = frozenset(("model", "on", "own", "method", "quantization", "provider"))
"""Flags that leave the load open: what a million tokens cost is then told of a batch, which keeps the GPUs busy."""
WORK = frozenset(("tokens", "samples", "epochs", "steps", "deadline", "budget"))
"""Flags of which training needs one to have a price."""
OPTIMAL = "chinchilla"
"""Tokens by which hardware is compared for training, where nothing says how many."""
_NOTHING: Mapping[str, str] = {}
_DECISIVE = LEADING | FOLLOW | frozenset(("not", "no", "except", "excluding", "unless", "never", "neither", "nor",
                                          "without", "but"))
"""Words after which a question may mean the opposite of what the rest of it says, and those beside what is counted."""
_KIND = re.compile(r"^an? (?=[^0-9])")
_SEEN = frozenset(("image", "images", "picture", "pictures", "photo", "photos", "screenshots"))
_EDGES = "?!;:\"'()[]"


def words_of(args: Sequence[str]) -> list[str]:
    """Return the words of a sentence in small letters, apart from the signs between them."""
    text = " ".join(args).replace("\N{MULTIPLICATION SIGN}", "x").replace(" & ", " and ").lower()
    words = (word.strip(_EDGES).rstrip(".,") for word in text.replace(", ", " , ").split())
    return [each for word in words if word for each in _parted(word)]


def _parted(word: str) -> Iterator[str]:
    """Yield a word, and of 5/s or tokens/day its parts."""
    front, stroke, per = word.rpartition("/")
    if stroke and front and (per in ("month", "user", "request") or SECONDS.factor(per)):
        yield from (front, "per", per)
    else:
        yield word


def spoken(args: Sequence[str], catalog: Catalog, verb: str | None = None, beside: Mapping[str, str] = _NOTHING,
           left_out: list[str] | None = None) -> list[str] | None:
    """Return a command with flags that asks what the words ask, `verb` first where it is given; none of no question.

    beside: the flags that are given too. left_out: is told the words that are not understood and may be left out, as
    they count nothing and the rest says what it is about; where it is none, every word must be understood.

    Raises InputError with the words that were not understood.
    """
    sentence = Sentence(words_of(args), catalog).read()
    _source(sentence.asks, sentence.flags)
    known = sentence.flags | {flag: [value] for flag, value in beside.items() if flag not in sentence.flags}
    asked_of(sentence.amounts, sentence.asks, sentence.put, known, sentence.unread)
    if not sentence.flags and not sentence.asks:
        return None
    asks, flags = sentence.asks, sentence.flags
    _one_kind(flags)
    _had(asks, flags, left_out)
    given = flags.keys() | set(beside)
    chosen = "estimate" if "max" in flags else verb or _verb(asks, flags, given)
    _seen(sentence, asks, flags, chosen)
    if len(methods := flags.get("method", [])) > 1 and "reward-model" in methods:
        methods.remove("reward-model")  # who judges what another method trains
        flags["reward"] = ["model"]
    if "why-not" in asks and "on" in flags:
        flags["why-not"] = [f"gpu={name}" for name in flags.pop("on")]
    model = (flags.get("model") or [beside.get("model", "")])[0]
    makes = catalog.known_model(model) is None and catalog.known_diffusion(model) is not None
    if makes:
        flags.pop("images", None)  # a sample is one
    if "embed" in asks and "output" not in given:
        flags["output"] = ["0"]
    runs = asks & {"serve", "hold"} and not ("train" in asks and "tokens" in given)
    if (runs or (makes and "tune" not in asks)) and not given & {"method", "documents"}:
        flags["method"] = ["inference"]
    _imply(asks - ({"duration"} if makes else set()), flags, given, chosen)
    command = [chosen]
    for flag, values in flags.items():
        command += [f"--{flag}", ",".join(values)] if values else [f"--{flag}"]
    if left_out is not None and _may_go(sentence.unread, given):
        left_out += sentence.unread
    elif sentence.unread:
        raise InputError(f"not understood: {', '.join(map(repr, sentence.unread))}; the rest reads as: planner "
                         f"{shown(command)}")
    return command


def _may_go(unread: Sequence[str], given: Collection[str]) -> bool:
    """Say whether words may be left out of a question: none counts, names or takes back anything, or what is counted.
    """
    return "model" in given and not any(
        each in _DECISIVE or noun_of(each) or any(map(str.isdigit, each)) for word in unread for each in word.split())


def _source(asks: set[str], flags: dict[str, list[str]]) -> None:
    """Take buying and renting in one sentence for the question which of both, and buying alone for terms."""
    if {"buys", "rents"} <= asks:
        asks.add("rent")
    elif "buys" in asks and "rent" not in asks:
        flags.setdefault("terms", ["buy", "on-demand"])


def _seen(sentence: Sentence, asks: Collection[str], flags: dict[str, list[str]], chosen: str) -> None:
    """Put what words say beside others: kinds of hardware that are compared, images of samples that a model reads."""
    if chosen == "compare" and "on" in flags:  # an H100 and an H200 are kinds, and no machines of one
        flags["on"] = [_KIND.sub("", name) for name in flags["on"]]
    if "tune" in asks and "images" not in flags and _SEEN.intersection(sentence.words) and _sees(
            flags.get("model", []), sentence.catalog):
        flags["images"] = ["1"]


def _sees(names: Sequence[str], catalog: Catalog) -> bool:
    """Say whether a language model is named that reads images."""
    known = [catalog.known_model(name) for name in names]
    return any(model is not None and model.towers for model in known)


def _one_kind(flags: Mapping[str, Sequence[str]]) -> None:
    """Raise InputError for a run and a service in one sentence, with the file that asks about both on one fleet."""
    run = next((flag for flag in ("tokens", "samples") if flag in flags), "")
    load = next((flag for flag in ("users", "rate", "concurrency") if flag in flags), "")
    models = flags.get("model", [])
    if run and load and models:
        raise InputError(
            "training and a service in one sentence: ask about each alone, or about both on one fleet by planner plan "
            f"FILE with jobs: [{{name: run, model: {models[0]}, {run}: {flags[run][0]}}}, {{name: service, model: "
            f"{models[-1]}, {load}: {flags[load][0]}}}]")


def _had(asks: Collection[str], flags: dict[str, list[str]], left_out: list[str] | None) -> None:
    """Leave the model out of what hardware costs to rent or to buy, where nothing says how much work it does."""
    if "rent" in asks and "on" in flags and left_out is not None and (WORK | LOADS).isdisjoint(flags):
        left_out += [f"{name} (how much work it is)" for name in flags.pop("model", [])]
        flags.pop("method", None)


def _imply(asks: set[str], flags: dict[str, list[str]], given: Collection[str], verb: str) -> None:
    """Put the flags that follow from what is asked together with what is given. Raises InputError."""
    if {"cost", "train"} <= asks and WORK.isdisjoint(given):
        raise InputError("what training costs depends on how much: say so, as in 'train llama-3.1-8b on 1T tokens'")
    if "tune" in asks and "method" not in given and "samples" not in given and {"tokens", "epochs"} & set(given):
        flags["method"] = ["full"]  # of samples it is the default
    if ("cost" in asks or (verb == "compare" and "rent" not in asks)) and "tune" not in asks:
        _price(asks, flags, given)
    runs = "duration" in asks and "method" not in given and not asks & {"train", "tune", "generate"}
    if runs and "model" in given and WORK.isdisjoint(given) and LOADS.isdisjoint(given):
        flags["method"] = ["inference"]
    paced = {"tpot", "ttft", "e2e"} & set(given) or (
        "duration" in asks and verb == "plan" and flags.get("method") == ["inference"])
    if paced and LOADS.isdisjoint(given):
        flags["users"] = ["1"]
    if "budget" in given and flags.get("method") == ["inference"] and LOADS.isdisjoint(given):
        flags["objective"] = ["users"]
    if "longest" not in asks:
        return
    if not {"method", "tokens"} & set(given):
        flags["method"] = ["inference"]
    if verb == "estimate" or "method" in given:
        flags["max"] = ["sequence"]


def _price(asks: set[str], flags: dict[str, list[str]], given: Collection[str]) -> None:
    """Put the amount of work that what is named is priced by, where nothing says how much."""
    if not PRICED.issuperset(given) or "model" not in given:
        return
    if "train" in asks:
        flags["tokens"] = [OPTIMAL]
    elif flags.get("method") in (None, ["inference"]):
        flags.pop("method", None)
        flags["documents"] = ["1M"]


def shown(command: Sequence[str]) -> str:
    """Return a command as it is typed."""
    return " ".join(f"'{word}'" if set(word) & set(" $(;&|*") else word for word in command)


def _verb(asks: set[str], flags: Mapping[str, list[str]], given: Collection[str]) -> str:
    if "why-not" in asks:
        return "explain"
    if "rent" in asks or ("versus" in asks and "model" in given):
        return "compare"
    several = sum(len(flags.get(flag, ())) for flag in ("on", "own")) > 1
    layout = asks & {"fit", "longest"} and not several and PLANNED.isdisjoint(given)
    return "estimate" if layout and not BARE.issuperset(given) else "plan"
