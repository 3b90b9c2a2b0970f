"""What a number of tokens is: all that are trained on, those of a sample or a request, or the pace of an answer."""

from __future__ import annotations

from planner.cli.about import NOTHING, SERVING, Asides
from planner.cli.amounts import IN_ALL, Amount
from planner.cli.phrases import OF_TOKENS, PARAMETER
from planner.cli.places import PLACES, PREFIX
from planner.units import SECONDS


def context(amount: Amount, about: Asides) -> tuple[str, str]:
    """Read a length of context: of what is served the prompts fill it, where no limit is meant."""
    limit = amount.beside & {"max", "maximum", "longest", "to", "model"}
    most = {"--objective=users", "--objective=rate"} & about.asks
    if about.tunes or limit or not (about.kinds & SERVING or most):
        return "seq-len", amount.value
    return "context", amount.value


def tokens_of(amount: Amount, about: Asides) -> tuple[str, str]:
    """Read tokens: a pace, so many of a parameter or in a time, or a length."""
    if amount.per in _PACED:
        return "tpot", f"{amount.value} tokens/s"
    if amount.per in PARAMETER:
        return "tokens", f"{amount.value} per parameter"
    if amount.per and SECONDS.factor(amount.per):
        # a model that is tuned again and again is tuned once
        return "" if about.tunes else f"tokens-per-{amount.per}", amount.value
    if "tokens" in about.asks and amount.of_each and "samples" in about.nouns:
        about.assumed.append(f"the tokens of the answer, over {amount.text} of each, are how many samples that is")
        return NOTHING, ""
    return _length(amount, about), amount.value


def _length(amount: Amount, about: Asides) -> str:
    """Return what tokens are that are of no time: all that are trained on, or those of a sample or a request."""
    tokens = amount.number
    if tokens == _PRICED and "cost" in about.asks and not about.tunes and not about.asks & {"train", "batch"}:
        return NOTHING  # what a million tokens cost
    if tokens >= _TRAINED:
        written = amount.beside & OF_TOKENS["output"] or amount.near.get("output", _APART_BY) < _APART_BY
        runs = about.asks & {"batch", "generate"} or (written and "serve" in about.asks and "train" not in about.asks)
        if runs and written and not about.tunes:
            about.asks.add("generate")
            about.used.add("output")
        return "all-tokens" if runs and not about.tunes else "tokens"
    if said := PREFIX.words & amount.near.keys() - {"always", "system"}:
        about.used.update({*said, "always", "system"})
        return "prefix"
    behind = [flag for flag, words in OF_TOKENS.items() if amount.beside & words]
    if "rl" in about.asks and behind == ["input"] and (
            "," in amount.beside or not amount.beside & OF_TOKENS["input"] - {"each"}):
        behind = []  # of answers, too, each has so many
    each = amount.of_each or (not behind and "at" not in amount.beside and tokens < _PRICED)
    sampled = about.kinds & {"samples", "images", "documents"} if about.tunes else not about.serves and (
        "samples" in about.kinds)
    if sampled and each and behind[-1:] != ["output"] and "rl" not in about.asks:
        return "mean-length"
    if not behind and (flag := _named(amount, about)):
        behind = [flag]
    if "at" in amount.beside or behind:
        return "seq-len" if "at" in amount.beside else behind[-1]
    return "input" if about.serves or about.kinds & {*IN_ALL, "requests"} else "tokens"


def _named(amount: Amount, about: Asides) -> str:
    """Return the side of tokens that a word right before them names, as in replies of 150 tokens; of what is drawn to
    learn from those that nothing names are of answers.
    """
    for place in PLACES[""]:
        if place.flag in ("input", "output") and any(amount.near.get(word, _APART_BY) < _APART_BY
                                                     for word in place.words - {"prompt", "answer"}):
            return place.flag
    if "rl" not in about.asks:
        return ""
    return "longest" if amount.beside & _MOST else "output"


_MOST = frozenset(("max", "maximum", "longest", "most", "up"))
_PACED = ("s", "sec", "second")
_TRAINED = 10**8
"""Tokens from which no prompt is so long."""
_APART_BY = 3
"""Words from which on another is not of a number."""
_PRICED = 10**6
"""Tokens that a price is told of."""
