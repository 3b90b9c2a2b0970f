"""Values of several words as people type them, unquoted: `--on rtx 3090`, `--tokens 10 billion`, `--on h100 or h200`.

What follows the value of an option, up to the next option, belongs to it, unless it names a scenario.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING

import click

from planner.cli.axes import with_axes
from planner.cli.completed import shown
from planner.cli.foreign import Foreign, with_switches
from planner.cli.open_values import MOVES, open_value
from planner.cli.phrases import PHRASES
from planner.cli.rephrased import given_flags, rephrased, unsaid
from planner.scenario.flag_names import INSTEAD, LEFT_OUT, LENGTHS, SHORT, SWITCHES
from planner.scenario.flags import FLAGS
from planner.scenario.said import own_name
from planner.scenario.words import SYNONYMS, method_named, named

if TYPE_CHECKING:
    from planner.cli.main import GlobalOptions

_BETWEEN = ("or", "and", "vs", "versus")
"""Words between the values of a list."""
_STORED = "workload.quantization"
_TRAINS = frozenset(("tokens", "samples", "epochs", "dataset"))
"""Flags beside which a format is one that is computed in, and no format of stored weights."""
_SHORT = 4
"""Letters of a part of a flag's name that says nothing alone."""
_ALIKE = 0.85
"""From which likeness a word is a scenario's name with a slip in it."""


Worded = Callable[[str, Mapping[str, str]], Sequence[str]]
"""Reads a phrase beside the flags that are given, by the planner's names; nothing where it is not understood."""


def joined(args: Sequence[str], command: click.Command, known: Callable[[str], bool], worded: Worded | None = None,
           say: Callable[[str], None] = unsaid, filed: Callable[[str], str] = lambda file: "",
           foreign: Foreign | None = None) -> list[str]:
    """Return the arguments of a command with every value as one; `known` says whether a name is one of hardware.

    worded: reads a flag that is none of the command's, with its value, as a phrase. say: is told what was assumed, and
    what is left out as it changes nothing. filed: tells the option that takes a file, by what is in it. foreign: knows
    the flags of other programs.
    """
    options = {name: option for option in command.params if isinstance(option, click.Option) for name in option.opts}
    if not any(param.name == "scenario" and param.nargs == 1 for param in command.params):
        return list(args)
    notes: list[str] = []
    args = with_switches(args, options)
    args = [SHORT.get(word, word) if word not in options and SHORT.get(word, "") in options else word for word in args]
    line = _Spoken(args, options, known, worded, notes.append, filed, foreign)
    argv = line.read()
    if len(line.heard) > 1:  # what each says may decide how another is read
        notes.clear()
        argv = _Spoken(args, options, known, worded, notes.append, filed, foreign, line.heard).read()
    for note in filter(None, (*dict.fromkeys(notes), foreign.note() if foreign else "")):
        say(note)
    return argv


class _Spoken:
    """A command line as it is read, option by option."""

    def __init__(self, args: Sequence[str], options: Mapping[str, click.Option], known: Callable[[str], bool],
                 worded: Worded | None, say: Callable[[str], None], filed: Callable[[str], str],
                 foreign: Foreign | None, heard: Mapping[str, Mapping[str, str]] | None = None) -> None:
        """Take the arguments, what reads them, and what a reading before this one heard of phrases."""
        self.args, self.options, self.known, self.worded = args, options, known, worded
        self.say, self.filed, self.foreign, self.before = say, filed, foreign, heard or {}
        self.heard = dict[str, Mapping[str, str]]()
        """Flags that are read as phrases, with the values that stand in them."""
        self.beside = given_flags(args, options)

    def read(self) -> list[str]:
        """Return the arguments in the planner's words."""
        argv: list[str] = []
        options = self.options
        waiting = _unpacked(with_axes(rephrased(self.args, options, self.say), options), options, self.say)
        while waiting:
            bare = waiting.pop(0)
            if (meant := self._unusual(bare, waiting)) is not None:
                argv += meant[0]
                del waiting[:meant[1]]
                continue
            word = _called(bare, options)
            name, given, value = word.partition("=")
            option = options.get(name if given else word)
            said = self._in_words(bare, option, waiting)
            if said is not None:
                argv += said[0]
                del waiting[:said[1]]
                continue
            argv.append(word)
            if option is None or not _takes_words(option) or not (given or waiting):
                continue
            words = [value if given else waiting.pop(0)]
            while waiting and not waiting[0].startswith("-") and not is_scenario(waiting[0]):
                words.append(waiting.pop(0))
            several = len(words) > 1 or any(each in _BETWEEN for each in words[0].split())
            text = words[0] if not several else _list(words, option, self.known) if option.multiple else " ".join(words)
            if (meaning := open_value(option, text)) is not None:
                argv[-1:] = meaning
                self.say(f"{word if given else f'{word} {text}'} is " + (
                    f"read as {' '.join(meaning)}" if meaning else "what is planned for without it"))
            elif given:
                argv[-1] = f"{name}={text}"
            else:
                argv.append(text)
        return argv

    def _unusual(self, bare: str, behind: Sequence[str]) -> tuple[list[str], int] | None:
        """Return what an option that is none of the command's means, and how many words behind it are its value."""
        if bare in self.options or not bare.startswith("--"):
            return None
        name, equals, value = bare.partition("=")
        said = name[2:].replace("_", "-")
        values = [value] if equals else list(takewhile(lambda word: not word.startswith("-"), behind))
        taken = 0 if equals else len(values[:1])
        switch = "" if equals else SWITCHES.get(said, "")
        if alone := [switch] if switch.partition("=")[0] in self.options else _value_alone(
                bare, behind, self.options, self.args):
            return alone, 0
        if said in MOVES and values:
            return [name, values[0]], taken
        is_ours = own_name(said, {option[2:] for option in self.options}) is not None
        if not is_ours and (why := self._left(said)) is not None:
            if why:
                self.say(f"{name} is left out: {why}")
            return [], taken
        unknown = values[:1] and not is_ours
        if not unknown or (option := self.filed(values[0])) not in self.options:
            return None
        self.say(f"{name} {values[0]} is read as {option} {values[0]}")
        return [option, values[0]], taken

    def _left(self, said: str) -> str | None:
        """Return why a flag that is none of the planner's is left out, empty for one told of elsewhere; none else."""
        return LEFT_OUT.get(said) or (self.foreign.left(said) if self.foreign else None)

    def _in_words(self, bare: str, option: click.Option | None, behind: Sequence[str]
                  ) -> tuple[list[str], int] | None:
        """Return what a flag says as a phrase, and how many words behind it belong to it; none where it says nothing.

        It is one where the command has no such flag, where one that needs a value has none, or has none of its choices.
        """
        name, equals, value = bare.partition("=")
        values = [value] if equals else list(takewhile(lambda word: not word.startswith("-"), behind))
        if self.worded is None or not name.startswith("--") or name == "--help" or (option is not None and (
                not _takes_words(option) or (values and not (isinstance(option.type, click.Choice)
                                                             and values[0] not in option.type.choices)))):
            return None
        dashed = name[2:].replace("_", "-")
        said, value = dashed.replace("-", " "), " ".join(values)
        others = {flag: text for heard in (self.before, {"": self.beside}) for phrase, flags in heard.items()
                  for flag, text in flags.items() if dashed not in (phrase, flag)}
        # of what a flag measures a number counts nothing: --image-size 512
        counts = said.split()[-1] not in LENGTHS
        for phrase in dict.fromkeys((f"{said} {value}".strip(), f"{value} {said}".strip())[:1 + counts]):
            flags = list(self.worded(phrase, others))
            if not flags and not values and PHRASES.get(phrase, "--").isalpha():
                return [], 0  # --batch-job says nothing that its values do not
            if flags and all(word in self.options or word[2:] in MOVES for word in flags if word[:2] == "--"):
                self.say(f"{phrase!r} is read as {shown(flags)}")
                self.heard[dashed] = {flag[2:]: text for flag, text in pairwise(flags) if flag[:2] == "--" and any(
                    map(str.isdigit, text)) and text.split()[0].lower() in value.lower()}
                return flags, 0 if equals else len(values)
        return None


def _unpacked(args: list[str], options: Mapping[str, click.Option], say: Callable[[str], None]) -> list[str]:
    """Return the arguments without --packing where nothing names samples, or a file of these."""
    alone = all(word.startswith("-") or args[at - 1].startswith("-") for at, word in enumerate(args))
    if "--packing" not in args or not alone or {"samples", "dataset", "from"} & given_flags(args, options).keys():
        return args
    say("--packing is left out: without samples every sequence is full")
    return [word for word in args if word != "--packing"]


def _called(word: str, options: Mapping[str, click.Option]) -> str:
    """Return an option by its own name, where people call it by another. Raises UsageError with what to write."""
    name, given, value = word.partition("=")
    if not name.startswith("--") or name in options:
        return word
    if (dashed := name.replace("_", "-")) in options:
        return f"{dashed}{given}{value}"
    own = own_name(name[2:], {option[2:] for option in options if option.startswith("--")})
    # --cpu-offload is of offload
    words = (name[2:], *(part for part in dashed[2:].split("-") if not own and len(part) > _SHORT))
    if (why := next((INSTEAD[part] for part in words if part in INSTEAD), None)) is not None:
        raise click.UsageError(f"No such option: {name}: {why}")
    return f"--{own}{given}{value}" if own else word


def _value_alone(word: str, behind: Sequence[str], options: Mapping[str, click.Option], args: Sequence[str]
                 ) -> list[str]:
    """Return the option and value of `--lora` or `--int4`, a value that is given as if it were a switch; none else.

    Beside a method of post-training it says what trains.
    """
    said = word[2:].replace("-", " ") if word.startswith("--") and "=" not in word else ""
    if not said or (behind and not behind[0].startswith("-")):
        return []
    for flag, path in (("--method", "workload.method"), ("--quantization", _STORED)):
        name = method_named(said) if flag == "--method" else named(path, said)
        if path == _STORED and _TRAINS.intersection(given_flags(args, options)) and "--precision" in options and (
                named("workload.precision", said) in SYNONYMS["workload.precision"][0]):
            return ["--precision", said]
        if flag in options and name in SYNONYMS[path][0]:
            beside = flag == "--method" and name in SYNONYMS["workload.tuning"][0] and "method" in given_flags(
                args, options)
            return ["--tuning" if beside else flag, said]
    return []


def _takes_words(option: click.Option) -> bool:
    return not (option.is_flag or option.count or option._flag_needs_value or isinstance(option.type, click.Path))


def is_scenario(word: str) -> bool:
    """Say whether a word is a file, or the name of a scenario that comes with the planner, slips allowed."""
    from planner.scenario.load import shipped

    return os.path.exists(word) or word.endswith((".yaml", ".yml", ".json")) or bool(
        difflib.get_close_matches(word, shipped(), 1, _ALIKE))


def _list(words: Sequence[str], option: click.Option, known: Callable[[str], bool]) -> str:
    """Return words as a list with commas: hardware may be called by several words, other values are one each."""
    pieces = [piece for word in words for piece in _pieces(word)]
    if option.name not in ("on", "own"):
        return ",".join(_in_phrases([piece for piece in pieces if piece != ","], FLAGS.get(str(option.name), "")))
    items: list[str] = []
    for at, piece in enumerate(pieces):
        begun = bool(items) and items[-1] != ""
        if piece == ",":
            items.append("")
        elif begun and (known(f"{items[-1]} {piece}") or not known(items[-1]) or not any(
                known(" ".join(pieces[at:at + many])) for many in (1, 2))):
            items[-1] += f" {piece}"
        elif begun or not items:
            items.append(piece)
        else:
            items[-1] = piece
    return ",".join(filter(None, items))


def _in_phrases(pieces: list[str], path: str) -> Iterator[str]:
    """Yield the names in words, of which two may be one name: lambda labs, on demand."""
    while pieces:
        many = 2 if named(path, " ".join(pieces[:2])) != " ".join(pieces[:2]) else 1
        yield " ".join(pieces[:many])
        pieces = pieces[many:]


def _pieces(word: str) -> Iterator[str]:
    """Yield the words of a value, and a comma wherever a new one begins."""
    for each in word.replace(",", " , ").split():
        yield "," if each in _BETWEEN else each


def hardware_known(settings: GlobalOptions) -> Callable[[str], bool]:
    """Return what says whether the catalog knows a name of hardware."""
    def known(name: str) -> bool:
        from planner.cli.options import open_catalog
        from planner.scenario.hardware_names import is_hardware

        return is_hardware(name, open_catalog(settings.catalogs, settings))

    return known
