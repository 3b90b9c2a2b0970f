"""Text that a shell script holds for something else: a script in a variable, a config that it writes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_OPENED = re.compile(r"<<-?[ \t]?\\?['\"]?([A-Za-z_]\w{0,40})['\"]?", re.ASCII)
_HELD = re.compile(r"[ \t]{0,40}(?:(?:export |local )?[A-Za-z_]\w{0,99}=\"?\$\([ ]?cat\b|read -r -d '' \w)", re.ASCII)
_INTO = re.compile(r"(?:>|\btee(?: -a)?)[ \t]{0,4}(\"?[^\s<>|;&]{1,300})", re.ASCII)


@dataclass(slots=True)
class Heredocs:
    """A script without them, what variables hold in their place, and the text of the files that it writes."""

    lines: list[str] = field(default_factory=list)
    written: dict[str, str] = field(default_factory=dict)
    """By the name as the script has it, variables and all."""


def heredocs(text: str) -> Heredocs:
    """Return a script with its heredocs apart: a script that a variable holds stays where it is, to be run later."""
    found, lines = Heredocs(), iter(text.splitlines())
    for line in lines:
        opened = None if line.lstrip().startswith("#") or "<<<" in line else _OPENED.search(line)
        if opened is None:
            found.lines.append(line)
            continue
        body = list(_until(lines, opened[1]))
        before = line[:opened.start()]
        if _HELD.match(before):
            found.lines += [each.replace("\\$", "$") for each in body]
            if (closing := next(lines, ")").strip()) not in (")", ')"'):
                found.lines.append(closing)
        elif into := _INTO.search(line):
            found.written[into[1].strip("\"'")] = "\n".join(body)
    return found


def _until(lines: Iterator[str], tag: str) -> Iterator[str]:
    """Yield lines up to the one that ends a heredoc."""
    for line in lines:
        if line.strip() == tag:
            return
        yield line
