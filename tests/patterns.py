"""Regular expressions read as sequences of repeats, to tell by their structure which may backtrack without end."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

SAMPLE = [*map(chr, range(128)), "²", "é", "±", "\u2028"]
ALL = frozenset(SAMPLE)
UNBOUNDED = 1000
"""Repeats of so many and more may take any length."""
SEARCHES = {"search", "sub", "split", "findall", "finditer", "subn"}
MOST_WAYS = 4096


@dataclass(frozen=True)
class Item:
    """One step of a pattern: the characters it takes, whether it may take none, whether any number of them."""

    chars: frozenset[str]
    nullable: bool
    endless: bool


ANYTHING = Item(ALL, nullable=True, endless=True)
ANCHOR = Item(frozenset(), nullable=False, endless=False)
"""Takes nothing, and may fail."""


def _chars(op: Any, value: Any, flags: int) -> frozenset[str]:
    return frozenset(char for char in SAMPLE if _takes((op, value), char, flags))


def _takes(node: Any, char: str, flags: int) -> bool:
    op, value = node
    forms = {char, char.lower(), char.upper()} if flags & re.IGNORECASE else {char}
    if op is ops.LITERAL:
        return chr(value) in forms
    if op is ops.NOT_LITERAL:
        return chr(value) not in forms
    if op is ops.ANY:
        return bool(flags & re.DOTALL) or char != "\n"
    if op is ops.RANGE:
        return any(len(form) == 1 and value[0] <= ord(form) <= value[1] for form in forms)
    if op is ops.CATEGORY:
        name = str(value).rsplit("_", maxsplit=1)[-1].lower()[0]
        letter = {"d": "d", "s": "s", "w": "w"}[name]
        return bool(re.match(f"\\{letter.upper() if '_NOT_' in str(value) else letter}", char,
                             flags & re.ASCII)) if char else False
    assert op is ops.IN, op
    negated, parts = value[0][0] is ops.NEGATE, [part for part in value if part[0] is not ops.NEGATE]
    return any(_takes(part, char, flags) for part in parts) != negated


def ways(data: Any, flags: int) -> list[tuple[Item, ...]]:
    """Return every way through a parsed pattern, each repeat that may go on for ever unrolled twice."""
    found: list[tuple[Item, ...]] = [()]
    for op, value in data:
        if op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
            low, high, inner = value
            endless = high is ops.MAXREPEAT or int(high) >= UNBOUNDED
            bodies = ways(inner, flags)
            if all(len(body) == 1 and not body[0].endless for body in bodies):
                chars = frozenset().union(*(body[0].chars for body in bodies))
                parts = [(Item(chars, nullable=low == 0, endless=endless),)]
            else:
                again = [one + two for one, two in product(bodies, bodies)] if endless else bodies
                parts = [*again, *([()] if low == 0 else [])]
        elif op is ops.SUBPATTERN:
            parts = ways(value[3], flags | value[1])
        elif op is ops.ATOMIC_GROUP:
            parts = ways(value, flags)
        elif op is ops.BRANCH:
            parts = [way for branch in value[1] for way in ways(branch, flags)]
        elif op in (ops.ASSERT, ops.ASSERT_NOT, ops.AT):
            parts = [(ANCHOR,)]
        else:
            parts = [(Item(_chars(op, value, flags), nullable=False, endless=False),)]
        found = [one + two for one, two in product(found, parts)]
        assert len(found) <= MOST_WAYS, "too many ways to look at"
    return found


def runs_away(pattern: str, flags: int = 0, *, searched: bool = False) -> bool:
    """Say whether two repeats without end may share out the same characters in many ways before something fails."""
    parsed = parser.parse(pattern, flags)
    flags = parsed.state.flags
    anchored = parsed.data and parsed.data[0][0] is ops.AT and parsed.data[0][1] in (ops.AT_BEGINNING,
                                                                                     ops.AT_BEGINNING_STRING)
    lead = (ANYTHING,) if searched and not anchored else ()
    return any(_shared(lead + way) for way in ways(parsed, flags))


def _shared(way: tuple[Item, ...]) -> bool:
    """Say whether two repeats of one way can take the same run of characters, with all that stands between them."""
    for at, first in enumerate(way):
        for place, other in enumerate(way[at + 1:], at + 1):
            common = first.chars & other.chars
            if first.endless and other.endless and common and any(not later.nullable for later in way[place + 1:]):
                between = [one for one in way[at + 1:place] if not one.nullable and one is not ANCHOR]
                if all(one.chars & common for one in between):
                    return True
    return False


def patterns(path: Path) -> Iterator[tuple[int, str, int, bool]]:
    """Yield line, pattern, flags and whether it is searched for, of every regular expression of a source file."""
    text = path.read_text(encoding="utf-8")
    if "import re\n" not in text:
        return
    tree = ast.parse(text)
    tabled = _tabled(tree)
    used: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name)):
            used.setdefault(node.func.value.id, set()).add(node.func.attr)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and tabled & {t.id for t in _targets(node)}:
            for inner in ast.walk(node):
                if isinstance(inner, ast.Tuple) and inner.elts and isinstance(inner.elts[0], ast.Constant):
                    yield inner.lineno, str(inner.elts[0].value), 0, True
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name) and node.func.value.id == "re" and node.args
                and isinstance(node.args[0], ast.Constant)):
            continue
        flags = sum(int(getattr(re, word.attr)) for word in ast.walk(node)
                    if isinstance(word, ast.Attribute) and word.attr.isupper())
        target = next((t.id for a in ast.walk(tree) if isinstance(a, ast.Assign) and a.value is node
                       for t in a.targets if isinstance(t, ast.Name)), "")
        calls = used.get(target, set()) if node.func.attr == "compile" else {node.func.attr}
        yield node.lineno, str(node.args[0].value), flags, not calls or bool(calls & SEARCHES)


def _targets(node: ast.Assign | ast.AnnAssign) -> list[ast.Name]:
    return [t for t in (node.targets if isinstance(node, ast.Assign) else [node.target]) if isinstance(t, ast.Name)]


def _tabled(tree: ast.AST) -> set[str]:
    """Return the names of tables whose first column is patterns: some loop over them names it so."""
    return {loop.iter.id for loop in ast.walk(tree)
            if isinstance(loop, ast.comprehension) and isinstance(loop.iter, ast.Name)
            and isinstance(loop.target, ast.Tuple) and isinstance(loop.target.elts[0], ast.Name)
            and loop.target.elts[0].id == "pattern"}
