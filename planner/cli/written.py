"""The text of a sentence as words: its signs, currencies and abbreviations written out, and a comma where a part ends.

A dash that stands alone, a semicolon, a bullet and the end of a line or a sentence are commas; `~` and quotes say
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from planner.cli.phrases import PARAMETER, PER_THING
from planner.cli.plain_words import plain_words
from planner.units import SECONDS

_NUMBER = r"\d[\d.,_]*"
_SCALE = r"(?: ?(?:k|m|mn|mil|bn|thousand|million|billion|grand)\b)?"
_MONEY = {"\N{EURO SIGN}": "euros", "\N{POUND SIGN}": "pounds"}
_COINS = "".join(_MONEY)
_MEASURED = (r"(?:[$%\N{EURO SIGN}\N{POUND SIGN}]|(?:k|m|b|t|bn|mn|mio|mln|mrd|mld|thousand|million|billion|trillion|"
             r"eur|euros?|usd|dollars?|cents?|ms|s|secs?|seconds?|min|minutes?|h|hours?|days?|weeks?|months?|years?|kwh|kw|mw|"
             r"percent)\b)")
"""What stands behind a number with a decimal comma: 2,5 Mrd tokens, 0,35 EUR."""
_WHOLE = (r"(?:tokens?|users?|samples?|requests?|documents?|docs|images?|prompts?|pairs?|rows|clips?|hours|people|"
          r"customers|emails|pages|chunks|examples|conversations|steps|usd|eur|euros?|dollars)")
"""What comes in whole numbers, of which thousands are parted by dots: 50.000 users."""
_SIGNS: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    ("[\N{LEFT SINGLE QUOTATION MARK}\N{RIGHT SINGLE QUOTATION MARK}`\N{PRIME}]", "'"),
    ("[\"\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}\N{LEFT-POINTING DOUBLE ANGLE QUOTATION MARK}"
     "\N{RIGHT-POINTING DOUBLE ANGLE QUOTATION MARK}]", ""),
    ("\N{MULTIPLICATION SIGN}", "x"), (r"@(?=[\s\d$])", " at "),
    (r"\b(\d{1,3}(?:\.\d{1,3})?)e(\d{1,2})\b", lambda said: f"{float(said[0]):.0f}"),
    (r"^\W*(?:(?:quick|simple|short|stupid|dumb|noob|newbie) )?question ?[:,-]", ""),
    (r"(?<=[a-z0-9])(?<!deadline): (?=[a-z])", " , "), (r"(?<=[a-z0-9])\((?=\d)", " ("),
    (r"(?<=[a-z0-9]) ?\* ?(?=\d{1,2}(?![\w.]))", "*"), (r"(?<=\d) (?=[gt]i?b\b(?!/))", ""),
    (r"(\d{2,3}g)s\b", r"\1"),
    (r"\b(\d{4}) (?=(?:xtx|xt|gre)\b)", r"\1"),
    (r"\b([a-z]{3,12})-?(\d{1,3})b?/(\d{1,3})b?/(\d{1,3})b\b", r"\1 \2b , \1 \3b , \1 \4b"),
    (r"(?<=[a-z0-9])-(?:class|sized?|scale)\b", ""),
    (r"\bnvidia(?:'s)?[ -](?:geforce )?(?=(?:dgx|hgx|rtx|tesla|geforce|quadro|titan)\b|[a-z]{1,3}\d)", ""),
    (r"(?<![\d.,])(\d{4,15}),(?=\d)", r"\1 , "), (r"(?<!\S)(\d{1,4}) ?\* ?(?=[a-z]{0,5}\d)", r"\1 x "),
    (r"\b(?:tps|t/s)(?: (?:is|of|around|about|at|least|=|:))* (\d[\d.]*)(?![\d\w])", r"\1 tok/s"),
    (r"(?<![a-z])(?:tps|t/s|tokens?/sec(?:ond)?)\b", " tok/s"),
    (r"(?<=prompts) ?x ?(\d{1,4}) ?(samples|rollouts|responses|completions|generations|answers)\b", r" , \1 \2 each"),
    (rf"(?<![\d.,])(\d{{1,3}}),(\d{{1,2}})(?= ?{_MEASURED})", r"\1.\2"),
    (rf"(?<![\d.,])(\d{{1,3}}(?:\.\d\d\d)+)(?= (?:\w+ )?{_WHOLE}\b)", lambda said: said[1].replace(".", "")),
    (r"\b(?:mio|mln)\b\.?|\b(?:millionen|millions)\b", "million"),
    (r"\b(?:mrd|mld)\b\.?|\b(?:milliarden|milliards?|billions)\b", "billion"),
    (r"(?m)^[ \t]*(?:[-*\N{BULLET}\N{MIDDLE DOT}\N{EN DASH}\N{EM DASH}]|\d{1,2}[.)])[ \t]+", " , "),
    # 4/8 L40S, 64 vs 128 H100, 2 nodes x 8 A800
    (r"(?<!\S)(?!24/7)(\d{1,2})/(\d{1,2}) ?x? (?=(?:nvidia )?([a-z]{1,4}\d{1,4}[\w-]*))", r"\1 \3 , \2 "),
    (r"(?<!\S)(\d{1,4}) (vs|versus|or) (?=\d{1,4}(?: ?x ?| )([a-z]{1,4}\d{2,4}[\w-]*))", r"\1 \3 \2 "),
    (r"\b(\d{1,4}) nodes? ?[x*] ?(?=\d)", r"\1 nodes of "),
    (r"\(\d\)", " , "),
    (r"\b(?:an? )?fortnight\b", "2 weeks"),
    (r"\bfully(?=[ -](?:fine|tun|sft))", "full"), (r"\b(q?lora|dpo|sft|grpo)-(?=train|tun|fine)", r"\1 "),
    (r"[\r\n;|]+|\N{HORIZONTAL ELLIPSIS}|\.{2,}", " , "),
    (r"(?<=\d)[\N{EN DASH}\N{NON-BREAKING HYPHEN}\N{MINUS SIGN}](?=\d)", "-"),
    ("\N{NON-BREAKING HYPHEN}", "-"),
    ("[\N{EN DASH}\N{EM DASH}\N{HORIZONTAL BAR}]", " , "),
    (r"(?<!\S)(?:--?|/)(?!\S)", " , "),
    (r"(?<!\S)[~\N{ALMOST EQUAL TO}](?=[\d$])|(?<!\S)[~\N{ALMOST EQUAL TO}](?!\S)", ""),
    ("[-=]>|\N{RIGHTWARDS ARROW}", " , "),
    (r"\$ ?(?:/|per) ?(?:1?m(?:io|illion)? ?)?(?:tok|tokens?)\b", " cost per million tokens "),
    (r"(?:<=?|\N{LESS-THAN OR EQUAL TO})(?= ?[\d$])", " under "),
    (r"(?:>=?|\N{GREATER-THAN OR EQUAL TO})(?= ?[\d$])", " at least "),
    (r"\b(?:us|usd) ?\$ ?(?=\d)|\$ (?=\d)|\busd(?=\d)", "$"),
    (rf"(?<![\w$])({_NUMBER}{_SCALE}) ?\$", r"$\1"),
    (rf"([{_COINS}]) ?({_NUMBER}{_SCALE})", r"\2 \1"),
    (rf"(?<=[\w ])[{_COINS}]", lambda said: f" {_MONEY[said[0]]}"),
    (r"\b(\d{3,4}) ?(?:x|by) ?(\d{3,4})\b", r"\1x\2"), (r"\b(?:in/out|input/output|isl/osl|prompt/completion)\b", ""),
    (r"\bw/o\b", "without"), (r"\bw/(?=\s)", "with"), (r"(?<!\S)[&+](?!\S)", "and"),
    (r"\b(?:approx|ca|appr)\.", "about"), (r"\b(vs|max|min|avg|incl|excl|resp|est)\.", r"\1"))
"""What a sign is written as."""
_PATTERNS = tuple((re.compile(pattern), written) for pattern, written in _SIGNS)
_EDGES = "?!;:\"'()[]{}*"
_ENDS = re.compile(r"[a-z0-9%)\"'\]]{2,}[.?!]+['\")]*", re.ASCII)
"""A word that ends a sentence."""
_PAIR = re.compile(r"(?P<low>\$?\d+(?:\.\d+)?)(?P<scale>[kmbt]?)-(?P<high>\$?\d+(?:\.\d+)?[a-z]*)", re.ASCII)
"""7-8b, 10-20, 2k-4k, $5-10k: from a number to one that is greater."""
_BESIDES = re.compile(r"(?P<first>\d+(?:\.\d+)?[kmbt]|[a-z]{1,3}\d{1,4}[a-z]*)/(?P<second>\d+(?:\.\d+)?[kmbt]|"
                      r"[a-z]{1,3}\d{1,4}[a-z]*)", re.ASCII)
"""13b/400b, a100/h100: two words."""
_SIDES = re.compile(r"(?P<input>\d+(?:\.\d+)?k?)/(?P<output>\d+(?:\.\d+)?k?)", re.ASCII)
"""1k/256: tokens of a prompt and of an answer."""
_LEAST = 16
"""Tokens of a side at least; 24/7 are none."""
_NAMED = re.compile(r"(?P<name>[a-z][a-z_-]{0,30})[=:](?P<value>\$?\d\S*)", re.ASCII)
"""r=16, rank:32."""


def words_of(args: Sequence[str]) -> list[str]:
    """Return the words of a sentence in small letters, apart from the signs between them."""
    text = " ".join(args).lower()
    for pattern, written in _PATTERNS:
        text = pattern.sub(written, text)
    return plain_words([each for word in _apart(text.replace(", ", " , ").split()) for each in _parted(word)])


def _apart(words: Sequence[str]) -> Iterator[str]:
    """Yield words without the signs around them, a comma behind one that ends a sentence."""
    for at, each in enumerate(words):
        word = each.lstrip(_EDGES).rstrip(f"{_EDGES}.,")
        if each == ",":
            yield ","
        elif word:
            yield word
            if at + 1 < len(words) and (_ENDS.fullmatch(each) or each.endswith(",")):
                yield ","


def _parted(word: str) -> Iterator[str]:
    """Yield a word, and of 5/s, tokens/day, 7-8b, r=16 or a100/h100 its parts."""
    front, stroke, per = word.rpartition("/")
    if stroke and front and (per in PER_THING or per in PARAMETER or SECONDS.factor(per)):
        yield from (*_parted(front), "per", per)
    elif (pair := _PAIR.fullmatch(word)) and _below(pair):
        yield from (f"{pair['low']}{pair['scale']}", "to", pair["high"])
    elif (sides := _SIDES.fullmatch(word)) and min(map(_count, (sides["input"], sides["output"]))) >= _LEAST:
        yield from (sides["input"], "in", sides["output"], "out")
    elif both := _BESIDES.fullmatch(word):
        yield from (both["first"], "," if both["first"][0].isdigit() else "or", both["second"])
    elif said := _NAMED.fullmatch(word):
        yield from (said["name"], "=", said["value"])
    else:
        yield word


def _count(text: str) -> float:
    """Return a number such as 1.5k."""
    return float(text.removesuffix("k")) * (1000.0 if text.endswith("k") else 1.0)


def _below(pair: re.Match[str]) -> bool:
    """Say whether the first number of a pair is below the second, as from one to the other."""
    high = re.match(r"\$?(\d+(?:\.\d+)?)", pair["high"])
    return high is not None and (bool(pair["scale"]) or float(pair["low"].lstrip("$")) < float(high[1]))
