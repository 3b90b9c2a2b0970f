"""Quantities as people write them: the unit is part of the text, or of the number where only one can be meant.

Each dimension is a table of units as they are written, and of the other spellings that are read. GB is 1e9 bytes and
GiB 2**30; `Gbit/s` is a link rate, divided by eight; `GB/s` a byte rate. A month is 30 days and a year 365.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import product

DECIMAL = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
_SPOKEN = {"thousand": 1e3, "million": 1e6, "mio": 1e6, "mln": 1e6, "mn": 1e6, "mm": 1e6, "B": 1e9, "billion": 1e9,
           "bln": 1e9, "bn": 1e9, "trillion": 1e12, "tn": 1e12}
"""Scales of counts and money beside the prefixes; B and bn are billions where nothing is measured in bytes."""
_PLAIN = re.compile(r"[+-]?(?:(?:\d{1,3}(?:,\d{3})+|\d[\d_]*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_WRITTEN = re.compile(r"([+-]?[\d.,_]+(?:[eE][+-]?\d+)?) ?(.*)", re.ASCII)
_NUMBERS = {"half an": "0.5", "half a": "0.5", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6",
            "seven": "7", "eight": "8", "nine": "9", "ten": "10", "twelve": "12"}
"""Numbers that people write out, where they come first."""
_ONE = re.compile(r"^(?:an?|one) (?=[a-z])", re.IGNORECASE | re.ASCII)
_PER_WORD = re.compile(r"(?:^| )(?:per|an?) ", re.IGNORECASE | re.ASCII)
_PIECES = re.compile(r"(?<![\d.])[\d.]+|(?<![a-z])[a-z]+", re.IGNORECASE | re.ASCII)
_DOLLARS = re.compile(r"(?:us ?)?\$|(?:\bus )?\bdollars?\b|(?<![a-z]{2})usd(?![a-z])", re.IGNORECASE)
_EATEN = re.compile(r"0[\d,]*[a-z/ ]*|\.\d.*|[kmbgt]|/[a-z]*", re.IGNORECASE | re.ASCII)
"""What is left of $500, $1.5M and $k where a shell took $ and a digit for a variable."""
MAX_LENGTH = 100
"""Characters of the longest quantity that anyone writes; what is longer is refused before it is looked at."""
MAX_COUNT = 10**18
"""Above any count of tokens or sequences that makes sense, and within 64-bit integers."""


class Units(dict[str, float]):
    """Units of one dimension as they are written, with what each is in base units."""

    def __init__(self, written: Mapping[str, float], spoken: Mapping[str, float] | None = None,
                 hints: Mapping[str, str] | None = None, *, folded: bool = True, bare: str | None = None,
                 dollars: bool = False) -> None:
        """Take the units, other spellings that are read, and what to say of texts that are no unit.

        hints: what is written instead, `{0}` being the number. folded: case does not matter where it tells nothing
        apart. bare: the unit that a number without one has, where no other can be meant. dollars: money that can be
        of no other currency, so that its name may be left out.
        """
        super().__init__(written)
        self.spoken, self.hints, self.folded, self.bare = spoken or {}, dict(hints or {}), folded, bare
        self.dollars, self.money = dollars, any(unit.startswith("USD") for unit in written)

    @cached_property
    def _folded(self) -> dict[str, float]:
        """Return every spelling in lower case that means one thing."""
        known: dict[str, set[float]] = {}
        for name, factor in (*self.items(), *self.spoken.items()):
            known.setdefault(_joined(name).lower(), set()).add(factor)
        return {name: min(factors) for name, factors in known.items() if len(factors) == 1}

    def factor(self, unit: str) -> float | None:
        """Return what a unit as somebody wrote it is in base units; none where it is no unit of these."""
        joined = _joined(unit)
        for table in (self, self.spoken):
            if joined in table:
                return table[joined]
        if self.folded and unit not in self.hints and joined.lower() not in self.hints:
            return self._folded.get(joined.lower())
        return None

    def instead(self, number: str, unit: str, example: str) -> str:
        """Return what to write for a number with what is no unit: one short sentence."""
        hint = self.hints.get(unit) or self.hints.get(unit.lower())
        if hint is not None:
            return hint.format(number)
        near = difflib.get_close_matches(_joined(unit).lower(), [*map(str.lower, self), *self.spoken], 1, 0.75)
        if unit and near and len(unit) > 2:
            meant = next((name for name in (*self, *self.spoken) if name.lower() == near[0]), near[0])
            return f"did you mean '{number} {meant}'?"
        if "*" in self.hints:
            return self.hints["*"].format(number)
        known = example.partition(" ")[2]
        return f"write for example {number + ' ' + known if known else example!r}"


def _joined(unit: str) -> str:
    """Return a unit without its spaces, and per as a stroke."""
    return _PER_WORD.sub("/", unit.rstrip(".")).replace(" ", "")


def _scaled(scales: Mapping[str, float], names: Iterable[str]) -> Iterator[tuple[str, float]]:
    for (scale, factor), name in product(scales.items(), names):
        yield scale + name, factor


def counted(*nouns: str, hint: str = "write '{0} k', '{0} M' or '{0} billion'") -> Units:
    """Return the units of a count of things: a scale, and what is counted where that is said."""
    return Units(DECIMAL | {"B": 1e9}, {**_BINARY, **dict(_scaled(_SPOKEN, ("",))), **dict(_scaled(
        DECIMAL | _SPOKEN | _BINARY, nouns))}, {"*": hint})


BYTES = Units({p + "B": f for p, f in (DECIMAL | _BINARY).items()}, hints={
    prefix: f"write '{{0}} {p}B' (decimal) or '{{0}} {p}iB' (binary)" for p in "KMGT"
    for prefix in (p, p.lower(), p + "b", p.lower() + "b")}, folded=False)
BYTE_RATE = Units({u + "/s": f for u, f in BYTES.items()} | {p + "bit/s": f / 8 for p, f in DECIMAL.items()},
                  hints={p + "b/s": f"write '{{0}} {p}bit/s' or '{{0}} {p}B/s'" for p in "kMGT"}, folded=False)
FLOP_RATE = Units({p + "FLOP/s": f for p, f in DECIMAL.items()}, dict(_scaled(DECIMAL, ("FLOPS", "FLOPs"))))
_TIMES = {"us": ("µs", "microsecond", "microseconds"), "ms": ("msec", "msecs", "millisecond", "milliseconds"),
          "s": ("sec", "secs", "second", "seconds"), "min": ("mins", "minute", "minutes"),
          "h": ("hr", "hrs", "hour", "hours"), "d": ("day", "days"), "w": ("wk", "wks", "week", "weeks"),
          "month": ("mo", "months"), "y": ("yr", "yrs", "year", "years")}
_ALL_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 7 * 86400.0,
                "month": 30 * 86400.0, "y": 365 * 86400.0}
_TIME_WORDS = {word: _ALL_SECONDS[unit] for unit, words in _TIMES.items() for word in (unit, *words)}
SECONDS = Units({u: f for u, f in _ALL_SECONDS.items() if u not in ("w", "month", "y")}, _TIME_WORDS,
                {"m": "write '{0} min' or '{0} months'", "": "write '{0} d' or '{0} h'",
                 **dict.fromkeys(("overnight", "tonight"), "write the hours of your night, such as '12 h'"),
                 **dict.fromkeys(("weekend", "the weekend", "a weekend", "over the weekend"), "write '60 h'"),
                 **dict.fromkeys(("today", "tomorrow", "by tomorrow"), "write the hours until then, such as '24 h'"),
                 **dict.fromkeys(("asap", "soon", "as soon as possible", "fastest"),
                                 "give none, and --objective time finds the fastest plan")})
LATENCY = Units(SECONDS, _TIME_WORDS, SECONDS.hints | {"": "write '{0} s' or '{0} ms'"})
PER_TOKEN = Units(SECONDS, _TIME_WORDS | {f"{word}/{token}": factor for word, factor in _TIME_WORDS.items()
                            for token in ("token", "tok", "t")}, SECONDS.hints | {
                      "": "write '{0} ms' or '{0} tokens/s'"})
"""Seconds of a token."""
TOKEN_RATE = Units({"tokens/s": 1.0}, {
    f"{token}/{time}": 1 / _TIME_WORDS[time] for token in ("token", "tokens", "tok", "toks", "t")
    for time in ("s", "sec", "second", "min", "minute")} | dict.fromkeys(("tps", "tok/s/user", "tokens/s/user",
                                                                        "tps/user"), 1.0))
USD = Units({p + "USD": f for p, f in DECIMAL.items()}, dict(_scaled(_SPOKEN, ("USD",))))
_EUROS = dict.fromkeys(("euro", "euros", "eur", "\N{EURO SIGN}"), "prices are in USD")
MONEY = Units(USD, USD.spoken, _EUROS | dict.fromkeys(("/h", "/month", "per hour"),
              "a budget is of the whole job, such as '500 USD'") | {"G": "write '{0} billion USD'"},
              bare="USD", dollars=True)
"""What a question says of money; a fact names its currency."""
_HOURS = {word: factor / 3600.0 for word, factor in _TIME_WORDS.items() if factor >= 3600.0}
USD_PER_HOUR = Units({"USD/h": 1.0}, {f"{scale}USD/{time}": by / hours for scale, by in (DECIMAL | _SPOKEN).items()
                                     for time, hours in _HOURS.items()})
MONEY_PER_HOUR = Units(USD_PER_HOUR, USD_PER_HOUR.spoken, _EUROS | {
    "": "a service is paid for by time: write '{0} USD/h' or '{0} USD/month'"} | {
    scale: f"a service is paid for by time: write '{{0}} {scale}USD/month'" for scale in ("k", "M")}, dollars=True)
_GPU_HOURS = (*(f"{gpu}{hour}" for gpu in ("/GPU", "/card") for hour in (
    "", "h", "-h", "hr", "-hr", "hour", "-hour", "/h", "/hr", "/hour")),
    *(f"/{hour}{gpu}" for hour in ("h", "hr", "hour") for gpu in ("", "/GPU", "/card")))
MONEY_PER_GPU_HOUR = Units({"USD/GPU-h": 1.0}, dict.fromkeys(
    ("USD", *(f"{usd}{per}" for usd in ("USD", "") for per in _GPU_HOURS)), 1.0),
    _EUROS, bare="USD/GPU-h", dollars=True)
"""What a question says of an hour of a GPU."""
USD_PER_KWH = Units({"USD/kWh": 1.0})
MONEY_PER_KWH = Units(USD_PER_KWH, {"USD": 1.0, "/kWh": 1.0, "USD/MWh": 1e-3, "/MWh": 1e-3} | dict.fromkeys((
    f"{cent}{per}" for cent in ("cents", "cent", "ct", "c", "\N{CENT SIGN}", "USDcents", "UScents")
    for per in ("/kWh", "")), 0.01), _EUROS, bare="USD/kWh")
"""What a question says of electricity."""
USD_PER_KW_MONTH = Units({"USD/kW-month": 1.0})
USD_PER_KW = Units({"USD/kW": 1.0})
KG_PER_KWH = Units({"kg/kWh": 1.0, "g/kWh": 1e-3})
WATTS = Units({p + "W": f for p, f in DECIMAL.items()}, {"watt": 1.0, "watts": 1.0, "kilowatt": 1e3, "kilowatts": 1e3,
                                                         "megawatt": 1e6, "megawatts": 1e6},
              {"mW": "write '{0} MW' for megawatts", "mw": "write '{0} MW' for megawatts"})
_ASKED = ("requests", "request", "req", "reqs", "queries", "query", "prompts", "messages", "calls", "images",
          "image", "imgs", "img", "pics", "pictures", "clips", "clip", "videos", "video", "vids", "songs", "song",
          "tracks", "track", "r")
_PER = {word: factor for word, factor in _TIME_WORDS.items() if factor >= 1.0}
_MANY = {"": 1.0, "k": 1e3, "thousand": 1e3, "M": 1e6, "million": 1e6}
REQUEST_RATE = Units(
    {"requests/s": 1.0, "requests/min": 1 / 60, "requests/h": 1 / 3600, "request/s": 1.0},
    {f"{scale}{noun}/{word}": by / factor for scale, by in _MANY.items() for noun in (*_ASKED, "")
     for word, factor in _PER.items()} | {"rps": 1.0, "qps": 1.0, "rpm": 1 / 60, "qpm": 1 / 60}, bare="requests/s")
TOKENS = counted("token", "tokens", "tok", "toks")
SEQUENCES = counted("sequence", "sequences", "pair", "pairs", "seq", "seqs", "sample", "samples", "example", "examples")
USERS = counted("user", "users", "client", "clients", "person", "people", "session", "sessions", "concurrentusers",
                "requests", "concurrentrequests", "usersatonce")
DOCUMENTS = counted("document", "documents", "doc", "docs", "request", "requests", "prompt", "prompts", "page", "pages",
                    "row", "rows", "record", "records", "sample", "samples", "pair", "pairs", "preference",
                    "preferences")
GPUS = counted("gpu", "gpus", "card", "cards", hint="GPUs are counted: write '{0}' or '{0} GPUs'")
NODES = counted("node", "nodes", "server", "servers", "machine", "machines", "host", "hosts",
                hint="nodes are counted: write '{0}' or '{0} nodes'")
EPOCHS = counted("epoch", "epochs", "pass", "passes", "x")


def trimmed(text: str, what: str) -> str:
    """Return text with single spaces inside and none around. Raises ValueError where it is too long for a quantity.

    Every pattern of a quantity is matched against what this returns, so that none can run away.
    """
    if len(text) > MAX_LENGTH:
        raise ValueError(f"{with_article(what)} is written in at most {MAX_LENGTH} characters, got {len(text):,}")
    return " ".join(text.split())


def with_article(what: str) -> str:
    """Return a noun with its article."""
    return f"{'an' if what[0] in 'aeio' else 'a'} {what}"


def parse(text: object, units: Mapping[str, float], what: str, example: str) -> float:
    """Return `text` ("141 GB", "9,841 USD", "2 days", "$1.5M") in base units, positive and finite.

    Raises ValueError saying what to write instead: a bare number has no unit, `Gb/s` and `80G` are refused.
    """
    table = units if isinstance(units, Units) else Units(units)
    if table.bare is not None and isinstance(text, int | float) and not isinstance(text, bool):
        text = f"{text!r} {table.bare}"
    if not isinstance(text, str):
        raise ValueError(f"{what} needs a unit, got {text!r}: write for example {example!r}")
    value = _value(trimmed(text, what), text, table, what, example)
    if not math.isfinite(value) or value <= 0:
        raise ValueError(f"{text!r} is not {with_article(what)}: it must be above zero and finite")
    return value


def _value(plain: str, text: str, table: Units, what: str, example: str) -> float:
    """Return what `plain`, the text with single spaces, is in base units."""
    # nearly all that is read is a number and a unit as it is written
    match = _WRITTEN.fullmatch(plain)
    if match is not None and match.group(2) in table and _PLAIN.fullmatch(match.group(1)):
        return _float(match.group(1)) * table[match.group(2)]
    spelled = next((word for word in _NUMBERS if plain.lower().startswith(word + " ")), "")
    plain = _NUMBERS[spelled] + plain[len(spelled):] if spelled else plain
    plain, named = _ONE.sub("1 ", plain, count=1), table.dollars
    if table.money:
        plain, named = _without_dollars(plain, text, table)
    match = _WRITTEN.fullmatch(plain)
    total = _together(plain, table)
    if total is None and (match is None or not _PLAIN.fullmatch(match.group(1))):
        commas = "a comma separates thousands as in 9,841; " if match and "," in match.group(1) else ""
        instead = table.hints.get(plain.lower()) or f"{commas}write for example {example!r}"
        raise ValueError(f"{text!r} is not {with_article(what)}: {instead}")
    if total is not None or match is None:
        return total or 0.0
    number, unit = match.groups()
    scale, stroke, per = _joined(unit).partition("/")
    factor = table.factor(f"{scale}USD{stroke}{per}") if named else table.factor(unit or table.bare or "")
    if unit in table.hints:
        factor = None
    if factor is None:
        given = f"unknown unit {unit!r} in {text!r}" if unit else f"{text!r} has no unit"
        raise ValueError(f"{given}: {table.instead(number, unit, example)}")
    return _float(number) * factor


def _float(number: str) -> float:
    return float(number.replace("_", "").replace(",", ""))


def _without_dollars(plain: str, text: str, table: Units) -> tuple[str, bool]:
    """Return text without its sign or name of the dollar, and whether it is of dollars.

    Raises ValueError for what a shell leaves of an amount that begins with $: none is 0, and .5M may have been $1.5M.
    """
    if table.dollars and _EATEN.fullmatch(plain) and not _DOLLARS.match(plain):
        raise ValueError(f"{text!r} is not an amount of money: write for example 1.5 MUSD; a shell takes $1 for a "
                         "variable, so put '$1.5M' in quotes")
    rest = " ".join(_DOLLARS.sub(" ", plain).split())
    return rest, table.dollars or rest != plain


def _together(plain: str, table: Units) -> float | None:
    """Return the sum of several times, as in 1 day 12 h or 1h30m; none where it is nothing of the kind."""
    pieces = [piece for piece in _PIECES.findall(plain) if piece != "and"]
    if "min" not in table or len(pieces) < 4 or "".join(pieces) != plain.replace(" and ", "").replace(" ", ""):
        return None
    units = ["min" if unit == "m" else unit for unit in pieces[1::2]]
    factors = [table.factor(unit) for unit in units if unit.isalpha()]
    if None in factors or len(factors) * 2 != len(pieces) or not all(_PLAIN.fullmatch(piece) for piece in pieces[::2]):
        return None
    return sum(float(number) * factor for number, factor in zip(pieces[::2], factors, strict=True) if factor)


def parse_count(text: object, what: str = "count", example: str = "15 T", units: Mapping[str, float] = TOKENS) -> int:
    """Return a count: an integer, or a number with k, M, G or B, T, or a word ("15T", "10 billion", "8k" is 8,000)."""
    if isinstance(text, bool):
        raise ValueError(f"{what} must be a number like {example!r}, got {text!r}")
    # 10e9 is a count too where it is whole; nan and inf are none
    if isinstance(text, float) and text.is_integer():
        text = int(text)
    if isinstance(text, float):
        raise ValueError(f"{what} must be a whole number, got {text!r}")
    if isinstance(text, int):
        if not 0 < text <= MAX_COUNT:
            raise ValueError(f"{what} must be above zero and at most {MAX_COUNT:.0e}, got {text}")
        return text
    value = parse(text, units, what, example)
    if value > MAX_COUNT:
        raise ValueError(f"{what} must be at most {MAX_COUNT:.0e}, got {text!r}")
    if abs(value - round(value)) > 1e-6 * max(1.0, value):
        raise ValueError(f"{what} must be a whole number, got {text!r}")
    return round(value)
