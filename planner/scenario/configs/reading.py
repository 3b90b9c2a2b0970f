"""What is read of a config: scenario values and a layout, with the key that each came from, and what is left over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from planner.errors import InputError
from planner.scenario.configs.source import Source, beside, beside_of, source_of

AUTO = "auto"
"""What Hugging Face and DeepSpeed write where a value is left open."""
NONE: Mapping[str, int] = {}
"""No letters behind a number."""


@dataclass(frozen=True, slots=True)
class Reader:
    """One kind of config: what messages call it, how it is told by its content, and how it is read."""

    name: str
    tells: Callable[[Source], bool]
    read: Callable[[Reading], None]
    """Fills the reading; raises InputError for what the planner does not estimate."""


@dataclass(slots=True)
class Reading:
    """A config being read: keys are taken by name, and what they mean is put down."""

    source: Source
    values: dict[str, object] = field(default_factory=dict)
    """Scenario values by path."""
    layout: dict[str, str] = field(default_factory=dict)
    origin: dict[str, str] = field(default_factory=dict)
    """Scenario path or layout axis -> the key that said it."""
    names: tuple[str, ...] = ()
    """What the model may be called in the catalog, where the config does not use its full name."""
    called: tuple[str, dict[str, str]] | None = None
    """A target that `planner launch` knows, and what it calls the model: its family and flavour."""
    shape: dict[str, int] = field(default_factory=dict)
    """The model by its sizes, where the config has no name: layers, hidden, heads, kv_heads, ffn, vocab, experts."""
    gpus: int | None = None
    accumulation: int | None = None
    """Micro-batches of a step, where the config counts in these."""
    steps: int | None = None
    longest_prompt: int | None = None
    longest_answer: int | None = None
    """Tokens of prompts and of drawn answers at most; how long they are is what is usual."""
    micro_answers: int | None = None
    """Answers, with their prompts, of a micro-batch of one model copy at most."""
    of_samples: dict[str, object] = field(default_factory=dict)
    """Scenario values that count only where the question has samples: passes over them, and packing."""
    defaults: list[str] = field(default_factory=list)
    """What the config leaves open and the stack, or its tools, have a default for; in words."""
    default_of: dict[str, str] = field(default_factory=dict)
    """The same of scenario values, by path: of no interest where the question states them."""
    stated: set[str] = field(default_factory=set)
    """Scenario values that the question states, over those of the config."""
    counted: list[str] = field(default_factory=list)
    """What the answer counts in another way than the config has it, in words."""
    unknown: dict[str, str] = field(default_factory=dict)
    """Keys whose value is a variable that the file does not set, as it stands there."""
    open: dict[str, str] = field(default_factory=dict)
    """Axes that such a key holds -> the key."""
    taken: set[str] = field(default_factory=set)

    def get(self, *keys: str) -> object:
        """Return the value of the first of some keys that states one, and take all of them; none where none does."""
        first: object = None
        for key in map(self.source.named, keys):
            if key in self.source.keys:
                self.taken.add(key)
                value = self.source.keys[key]
                if self.source.form == "command" and isinstance(value, list):
                    value = value[0]  # what follows a flag's value is a word of the command
                if isinstance(value, str) and "$" in value and not value.startswith("$."):
                    self.unknown[key] = value
                first = value if first is None and not _is_open(value) else first
        return first

    def several(self, key: str) -> list[object]:
        """Return every value of a key: of a list, or of a flag that takes several."""
        first, key = self.get(key), self.source.named(key)
        held = self.source.keys.get(key)
        return held if isinstance(held, list) and self.source.form == "command" else (
            first if isinstance(first, list) else [] if first is None else [first])

    def number(self, *keys: str, suffixes: Mapping[str, int] = NONE) -> int | None:
        """Return a whole number above zero; suffixes: what the tool reads behind one (16k).

        Raises InputError where a key states anything else.
        """
        value = self.get(*keys)
        if value is None:
            return None
        written = str(value)
        times = suffixes.get(written[-1:], 1)
        plain = written[:-1] if times != 1 else written
        number = float(plain) * times if _is_number(plain) else 0.0
        if number < 1 or number != int(number):
            raise self.wrong(keys, value, "a whole number above zero")
        return int(number)

    def share(self, *keys: str) -> float | None:
        """Return a share above zero. Raises InputError where a key states anything else."""
        value = self.get(*keys)
        if value is None:
            return None
        if not _is_number(value) or not 0 < float(str(value)) <= 1:
            raise self.wrong(keys, value, "a share above 0, at most 1")
        return float(str(value))

    def text(self, *keys: str) -> str | None:
        """Return text, as it stands or as a number is written."""
        value = self.get(*keys)
        return None if value is None or isinstance(value, Mapping | list) else str(value).strip()

    def word(self, *keys: str) -> str | None:
        """Return text in small letters."""
        text = self.text(*keys)
        return None if text is None else text.lower()

    def named(self, *keys: str) -> str | None:
        """Return text, and of a path whose folder is a variable that the file does not set its last name."""
        text = self.text(*keys)
        for key in map(self.source.named, keys):
            last = self.unknown.get(key, "").rstrip('/"}').rpartition("/")[2]
            if text is None and last and "$" not in last:
                del self.unknown[key]
                return last
        return text

    def on(self, *keys: str) -> bool:
        """Say whether a switch is on: true, yes, 1, or a flag without a value."""
        return self.word(*keys) in {"true", "yes", "1", "on"}

    def file(self, key: str) -> Source | None:
        """Return the file that a key names, where it lies by the config; say so where it does not."""
        self.get(key)
        said = self.source.keys.get(self.source.named(key))
        named = str(said[0] if isinstance(said, list) and said else said).strip()
        if said is None or isinstance(said, Mapping) or named in ("", AUTO):
            return None
        if (path := beside(self.source, named)) is not None:
            return source_of(str(path))
        self.counted.append(f"{key}: {named} is not there, so without what it says")
        return None

    def under(self, key: str, *, word: str = "") -> None:
        """Read on with the file that a flag, or a word, of a line names under what the line says itself.

        Raises InputError where it is not there.
        """
        self.get(key)
        named = word or self.source.keys.get(self.source.named(key))
        if named is None or self.source.form != "command":
            return
        file = beside_of(self.source, str(named))
        below = {self.source.named(name): value for name, value in file.keys.items()}
        self.source = replace(self.source, keys=below | dict(self.source.keys))

    def put(self, path: str, value: object, key: str) -> None:
        """Put down a scenario value, if there is one."""
        if value is not None:
            self.values[path], self.origin[path] = value, key

    def tuned(self, key: str) -> None:
        """Put down full tuning where a config does not say what trains."""
        self.put("workload.method", "full", key)
        self.defaults.append("method full")

    def axis(self, axis: str, value: object, key: str) -> None:
        """Put down an axis of the layout, if there is a value."""
        if value is not None:
            self.layout[axis], self.origin[axis] = str(value), key

    def degree(self, axis: str, *keys: str) -> int:
        """Put down a degree of parallelism, and return it: 1 where none is stated.

        One that a variable holds, which the file does not set, is open: an estimate has to be told it.
        """
        value = self.number(*keys)
        if value is None:
            unset = [key for key in map(self.source.named, keys) if key in self.unknown]
            self.open |= {axis: unset[0]} if unset else {}
        self.axis(axis, value if value != 1 else None, _named(self.source, keys))
        return value or 1

    def wrong(self, keys: tuple[str, ...], value: object, expected: str) -> InputError:
        """Return the error for a key with another value."""
        return InputError(f"{_named(self.source, keys)}: expected {expected}, got {value!r}", file=self.source.file)

    @property
    def ignored(self) -> tuple[str, ...]:
        """Keys that nothing was read from, as the config orders them."""
        # of a launcher: python -m, and the sign behind which its command begins
        return tuple(key for key in self.source.keys if key not in self.taken and key not in ("m", ""))


def _named(source: Source, keys: tuple[str, ...]) -> str:
    """Return which of some names of a key the config uses."""
    return next((key for key in keys if key in source.keys), keys[0])


def _is_open(value: object) -> bool:
    """Say whether a value is left to the framework, or to a variable of a script."""
    return value in (None, AUTO, "", "None", "null") or (isinstance(value, str) and "$" in value)


def _is_number(value: object) -> bool:
    try:
        float(str(value))
    except ValueError:
        return False
    return not isinstance(value, bool)
