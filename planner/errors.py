"""The exceptions of the planner, each with the exit code its command ends with.

    PlannerError
    ├── InputError         2   what was given is wrong: file, line or key, value, what was expected
    │   ├── UnknownName    2   a name that no catalog holds, with the nearest ones
    │   └── Unsupported    2   outside the model: refused by name, never approximated
    ├── MissingFact        2   a catalog entry lacks a fact that this question needs
    └── IOFailure         74   the system could not read or write: disk full, device error, no descriptor left

Infeasible (3) and stopped-before-proof (4) are answers, not errors: they are statuses of a Plan.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any

EXIT_OK = 0
EXIT_INPUT = 2
EXIT_INFEASIBLE = 3
EXIT_STOPPED = 4
EXIT_BUG = 70
EXIT_IO = 74
EXIT_INTERRUPTED = 130


_WORDS = re.compile(r"[a-z]+|[0-9][0-9.]*[a-z]*")
"""Parts of a name: a word, or a number with what it counts."""
LONGEST_QUOTE, LONGEST_WORD, LONGEST_MESSAGE = 120, 400, 1200
"""Characters of a quoted value, of a word, and of a whole message; what is longer is cut."""
_QUOTE = re.compile(rf"(?<!\w)(['\"])(?:(?!\1).){{{LONGEST_QUOTE + 1},}}\1(?!\w)", re.DOTALL)
_WORD = re.compile(rf"\S{{{LONGEST_WORD + 1},}}")


def shortened(message: str) -> str:
    """Return a message with long values cut, so that where it happened and what was expected stay readable."""
    text = _QUOTE.sub(lambda match: f"{match[0][:57]}...{match[1]}", message)
    text = _WORD.sub(lambda match: f"{match[0][:300]}...{match[0][-40:]}", text)
    return text if len(text) <= LONGEST_MESSAGE else f"{text[:LONGEST_MESSAGE - 300]} ... {text[-290:]}"


class PlannerError(Exception):
    """Base of every expected failure; `exit_code` is what the process returns. Long values in it are cut."""

    exit_code = EXIT_INPUT

    def __init__(self, message: str) -> None:
        super().__init__(shortened(message))

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel between processes as it is: what made the message is not needed again."""
        return _restored, (type(self), self.args), self.__dict__


def _restored(kind: type[PlannerError], args: tuple[Any, ...]) -> PlannerError:
    error = kind.__new__(kind)
    error.args = args
    return error


class InputError(PlannerError):
    """The input is wrong. The message says where, what was found and what was expected.

    `key` is the dotted path of the value in the question, where it is one.
    """

    def __init__(self, problem: str, *, file: str | None = None, line: int | None = None, key: str | None = None
                 ) -> None:
        self.problem, self.file, self.line, self.key = problem, file, line, key
        where = f"{file}:{line}: " if file and line else f"{file}: " if file else ""
        super().__init__(where + problem)


class About(ValueError):
    """What is wrong with a block, for a check of several of its keys: the message, and the key to look at."""

    def __init__(self, key: str, problem: str) -> None:
        self.at = (key,)
        super().__init__(problem)


class UnknownName(InputError):
    """A name that the catalog does not hold; `known` supplies the suggestions, `unlike` what to say without any."""

    def __init__(self, what: str, name: str, known: Iterable[str], *, unlike: str = "", file: str | None = None,
                 line: int | None = None) -> None:
        self.name = name
        super().__init__(f"unknown {what} {name!r}{did_you_mean(name, known, unlike=unlike)}", file=file, line=line)

    def told_as(self, told: InputError) -> UnknownName:
        """Return the same name as unknown where `told` says that it stands, in the words of that."""
        placed = _restored(UnknownName, told.args)
        placed.__dict__.update(told.__dict__, name=self.name)
        assert isinstance(placed, UnknownName)
        return placed


class Unsupported(InputError):
    """Outside the model: the message names what is not supported."""

    def __init__(self, what: str) -> None:
        super().__init__(f"not supported: {what}")


class IOFailure(PlannerError):
    """The system failed at reading or writing something that may well be right."""

    exit_code = EXIT_IO


class MissingFact(PlannerError):
    """The catalog entry exists but lacks a fact that the calculation needs."""

    def __init__(self, entry: str, fact: str) -> None:
        super().__init__(f"{entry} has no {fact}: add it to the catalog (with its source) or choose another")


def did_you_mean(name: str, known: Iterable[str], *, unlike: str = "") -> str:
    """Return `"; did you mean a, b?"`, or `unlike` or what is known when nothing is near: the end of a message."""
    options = sorted(set(known))
    originals = {o.lower(): o for o in options}
    near = _with_all_words(name, originals) or difflib.get_close_matches(name.lower(), originals, 3, 0.6)
    if near:
        return "; did you mean " + ", ".join(originals[n] for n in near) + "?"
    if unlike:
        return f"; {unlike}"
    shown = ", ".join(options[:12]) + (", ..." if len(options) > 12 else "")
    return f"; known: {shown}" if shown else ""


def _with_all_words(name: str, options: Iterable[str]) -> list[str]:
    """Return the shortest options that have all of several words and sizes of a name ("qwen 32b"), or that begin with
    its one word, later ones first.
    """
    asked = set(_WORDS.findall(name.lower()))
    having = [option for option in options if (asked.issubset(_WORDS.findall(option)) if len(asked) > 1
                                               else len(name) > 2 and option.startswith(name.lower()))]
    return sorted(sorted(having, reverse=True), key=len)[:3]
