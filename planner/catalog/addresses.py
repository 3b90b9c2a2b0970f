"""Addresses of what sources name: pages, papers, and files of public repositories at the commit that was read."""

from __future__ import annotations

import re

_PAGE = re.compile(r"https://[^\s;,]+")
_ARXIV = re.compile(r"arXiv[: ](\d{4}\.\d{5})")
_PINNED = re.compile(r"([\w-]+/[\w.-]+)@(\w+):([^\s#]+)(#L\d+)?")
_FILE = re.compile(r"([\w-]+/[\w.-]+) ([\w.-]+(?:/[\w.-]+)+\.[a-z]+|[\w-]+\.md)")
_NAME = re.compile(r"(?!docs/)([A-Za-z][\w-]*/[\w.-]*[A-Za-z][\w.-]*)")
_AT = re.compile(r"(?<![\w/])([\w-]+/[\w.-]+) ([^ @;,][^@;,]{0,120})@([0-9a-f]{7,40})\b")
_ASKED = re.compile(r"(?<![\w/])([\w-]+/[\w.-]+) (?:pull request|issue) #?(\d{1,6})\b")
_SITE = re.compile(r"(?<![\w@/.-])((?:[a-z0-9-]{1,63}\.){1,4}(?:com|ai|org|net|io|cloud|dev)(?:/[\w./-]*\w)?)(?![\w@])")


def page_of(text: str) -> str | None:
    """Return the address of a run's page as evidence tells it: an address, a paper, a repository or file."""
    if text.startswith("https://"):
        return text.split(maxsplit=1)[0]
    if found := _ARXIV.search(text):
        return _paper(found)
    if found := _PINNED.match(text):
        return f"https://github.com/{found[1]}/blob/{found[2]}/{found[3]}{found[4] or ''}"
    if found := _FILE.match(text):
        return f"https://github.com/{found[1]}/blob/HEAD/{found[2]}"
    if found := _NAME.match(text):
        return f"https://github.com/{found[1]}"
    return None


def address_in(text: str) -> str | None:
    """Return the first address that a source names in words; none where it names none."""
    found = sorted((match.start(), address(match)) for pattern, address in (
        (_PAGE, lambda match: match[0]), (_ARXIV, _paper), (_AT, _committed), (_SITE, lambda match: f"https://{match[1]}"),
        (_ASKED, lambda match: f"https://github.com/{match[1]}/issues/{match[2]}"))
        if (match := pattern.search(text)) is not None)
    return found[0][1] if found else None


def _paper(found: re.Match[str]) -> str:
    return f"https://arxiv.org/abs/{found[1]}"


def _committed(found: re.Match[str]) -> str:
    """Return a file at a commit; of a path in words the whole tree."""
    repository, path, commit = found[1], found[2].strip(), found[3]
    kind = f"tree/{commit}" if " " in path else f"blob/{commit}/{path}"
    return f"https://github.com/{repository}/{kind}"
