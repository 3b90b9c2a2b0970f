"""What the numbers of a sentence are in a question: samples where a model is tuned are documents where it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from planner.cli.phrases import OF_TOKENS, PARAMETER, SIDES, noun_of
from planner.scenario.posttraining import PostTraining
from planner.units import SECONDS, parse
from planner.units.reading import parse_count

PATIENCE = 300.0
"""Seconds up to which a time is one that a user waits, and no deadline."""


class Amount(NamedTuple):
    """A number with what it counts."""

    value: str
    """With its scale: 10k."""
    noun: str
    per: str
    """In which time, or for whom."""
    beside: frozenset[str]
    """Words around it."""
    text: str
    """As it stands in the sentence."""


class About(NamedTuple):
    """What else the sentence says."""

    asks: set[str]
    kinds: frozenset[str]
    """Of things that are counted in it."""
    serves: bool
    tunes: bool
    whole: bool
    """Whether things are counted in all, and not by a time."""


def asked_of(amounts: Sequence[Amount], asks: set[str], put: Callable[..., None], flags: Mapping[str, Sequence[str]],
             unread: list[str]) -> None:
    """Put the flags that the numbers are; those that may be anything are left unread."""
    kinds = frozenset(noun_of(amount.noun) or "" for amount in amounts)
    whole = any(noun_of(amount.noun) in _IN_ALL and not amount.per for amount in amounts)
    tunes = "tune" in asks or bool(set(flags.get("method", ())) - {"inference"})
    if not tunes and (kinds & _SERVING or any(amount.per for amount in amounts if noun_of(amount.noun) not in _APART)):
        asks.add("serve")
    if any(noun_of(amount.noun) == "users" and _comes(amount) for amount in amounts):
        asks.add("comes")
    about = About(asks, kinds, bool(asks & {"serve", "hold", "batch"}) and not tunes, tunes, whole)
    for amount in _of_each(amounts):
        flag, value = _flag(amount, about)
        if flag:
            put(flag, value)
        else:
            unread.append(amount.text)
    if tunes and "images" in kinds and "images" not in flags:
        put("images", "1")


def _comes(amount: Amount) -> str:
    """Return in which time so many come, a day or a month; empty for those who are there at once."""
    time = "day" if "daily" in amount.beside else "month" if "monthly" in amount.beside else amount.per
    return {"day": "daily", "month": "monthly"}.get(time, "")


def _users(amount: Amount, about: About) -> tuple[str, str]:
    return f"{comes}-users" if (comes := _comes(amount)) else "users", amount.value


def _of_each(amounts: Sequence[Amount]) -> Sequence[Amount]:
    """Return amounts with what each user asks in a time as what all of them ask: 50 users, one image a minute each."""
    users = [amount for amount in amounts if noun_of(amount.noun) == "users" and not amount.per]
    each = [amount for amount in amounts if amount.per and SECONDS.factor(amount.per) and "each" in amount.beside
            and noun_of(amount.noun) in _ASKED]
    if len(users) != 1 or len(each) != 1:
        return amounts
    whole = parse_count(users[0].value, "users") * parse_count(each[0].value, each[0].noun)
    return [amount for amount in amounts if amount not in (users[0], each[0])] + [each[0]._replace(value=f"{whole:g}")]


def _flag(amount: Amount, about: About) -> tuple[str, str]:
    """Return the flag that a number is, and its value; empty where it is none."""
    if amount.noun and noun_of(amount.noun) is None:
        return "", amount.value
    kind = noun_of(amount.noun) or ("size" if amount.value[-1:] == "B" else "tokens" if amount.beside & SIDES else "")
    if not kind and amount.beside & _TOGETHER and not about.tunes:
        return "concurrency", amount.value
    if not kind and "at" in amount.beside:
        return "seq-len", amount.value
    if kind in _READ:
        return _READ[kind](amount, about)
    return (kind if kind in _ALIKE else _OTHERS.get(kind, "")), amount.value


def _asked(amount: Amount, about: About) -> tuple[str, str]:
    """Read requests, documents and images: so many in a time, or in all."""
    kind, value = noun_of(amount.noun), amount.value
    if amount.per == "step" and kind == "documents":
        return "prompts", value
    if "each" in amount.beside and not amount.per and "comes" in about.asks:
        return "requests-per-user", value
    if amount.per or "daily" in amount.beside:
        return "rate", f"{value} {'requests' if kind == 'documents' else amount.noun}/{amount.per or 'day'}"
    if kind == "requests":
        return ("concurrency" if amount.beside & _TOGETHER else "documents"), value
    return ("documents" if kind == "documents" and not about.tunes else "samples"), value


def _tokens(amount: Amount, about: About) -> tuple[str, str]:
    if amount.per in _PACED:
        return "tpot", f"{amount.value} tokens/s"
    if amount.per in PARAMETER:
        return "tokens", f"{amount.value} per parameter"
    if amount.per and SECONDS.factor(amount.per):
        # a model that is tuned again and again is tuned once
        return "" if about.tunes else f"tokens-per-{amount.per}", amount.value
    return _length(amount, about), amount.value


def _length(amount: Amount, about: About) -> str:
    """Return what tokens are that are of no time: all that are trained on, or those of a sample or a request."""
    if "samples" in about.kinds and "of" in amount.beside:
        return "mean-length"
    if parse_count(amount.value, "tokens") >= _TRAINED:
        return "tokens"
    if "at" in amount.beside:
        return "seq-len"
    behind = [flag for flag, words in OF_TOKENS.items() if amount.beside & words]
    if behind:
        return behind[-1]
    return "input" if about.serves or about.kinds & {"documents", "requests"} else "tokens"


def _time(amount: Amount, about: About) -> tuple[str, str]:
    value = f"{amount.value} {amount.noun}"
    if amount.per:
        return "", value
    seconds = parse(value, SECONDS, "time", "3 years")
    if "rent" in about.asks or (about.asks & {"buys", "rents"} and seconds >= _KEPT):
        return "years", f"{seconds / (SECONDS.factor('y') or 1.0):.6g}"
    if "first" in about.asks:
        return "ttft", value
    if "each-token" in about.asks:
        return "tpot", value
    waits = about.serves and seconds < PATIENCE and not about.whole
    return ("e2e" if waits else "deadline"), value


def _money(amount: Amount, about: About) -> tuple[str, str]:
    return "budget", f"{amount.value} USD/{amount.per}" if amount.per else f"{amount.value} USD"


def _power(amount: Amount, about: About) -> tuple[str, str]:
    return "max-power", f"{amount.value} {amount.noun}"


def _rate(amount: Amount, about: About) -> tuple[str, str]:
    return "rate", f"{amount.value} {amount.noun}"


def _share(amount: Amount, about: About) -> tuple[str, str]:
    if "uptime" in about.asks:
        return "spare-replicas", "1"
    return "utilization", f"{amount.value}%"


def _rollouts(amount: Amount, about: About) -> tuple[str, str]:
    """Read answers drawn to a prompt, or in a step to all of its prompts."""
    if amount.per != "step":
        return "samples-per-prompt", amount.value
    drawn = int(PostTraining.model_fields["samples_per_prompt"].default)
    return "prompts", str(max(1, parse_count(amount.value, "rollouts") // drawn))


def _size(amount: Amount, about: About) -> tuple[str, str]:
    return "model", amount.value.lower()


_ASKED = {"requests", "images", "clips", "documents"}
_PACED = ("s", "sec", "second")
_TRAINED = 10**8
"""Tokens from which no prompt is so long."""
_KEPT = 90 * 86400.0
"""Seconds from which a time is one that hardware is kept."""
_SERVING = {"users", "rate", "requests"}
_IN_ALL = {"documents", "images", "clips"}
"""Things that are made or answered in all, by a time and not each within it."""
_APART = ("money", "size")
_TOGETHER = {"concurrent", "simultaneous", "parallel", "once", "concurrently", "simultaneously"}
_ALIKE = ("users", "samples", "epochs", "steps", "gpus", "frames")
_OTHERS = {"context": "seq-len"}
_READ: Mapping[str, Callable[[Amount, About], tuple[str, str]]] = {
    "tokens": _tokens, "time": _time, "requests": _asked, "documents": _asked, "images": _asked, "clips": _asked,
    "money": _money, "power": _power, "rate": _rate, "share": _share, "size": _size, "rollouts": _rollouts,
    "users": _users}
