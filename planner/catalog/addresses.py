"""Addresses of what sources name: pages, papers, and files of public repositories at the commit that was read."""

from __future__ import annotations

import re

_ARXIV = re.compile(r"arXiv[: ](\d{4}\.\d{5})")
_PINNED = re.compile(r"([\w-]+/[\w.-]+)@(\w+):([^\s#]+)(#L\d+)?")
_FILE = re.compile(r"([\w-]+/[\w.-]+) ([\w.-]+(?:/[\w.-]+)+\.[a-z]+|[\w-]+\.md)(?![\w/])")
_ASKED = re.compile(r"([\w-]+/[\w.-]+) (?:pull request|issue) (\d{1,6})")
_NAME = re.compile(r"(?!docs/)([A-Za-z][\w-]*/[\w.-]*[A-Za-z][\w.-]*)")
_REPOSITORY = re.compile(r"[\w-]+/[\w.-]+")
_SITE = re.compile(r"[a-z0-9.-]+\.(?:com|ai|co|org|net|io|cloud|dev)(?:/[\w./-]*)?")
_COMMIT = re.compile(r"@([0-9a-f]{7,40})")
_REQUEST = re.compile(r"#?(\d{1,6})")
AROUND = "().,;:"
"""What stands around a word in a sentence, and is not of it."""
PATH = 5
"""Words that a path may have, between its repository and the commit."""


def page_of(text: str) -> str | None:
    """Return the address of a run's page as evidence tells it: an address, a paper, a repository or file."""
    if text.startswith("https://"):
        return text.split(maxsplit=1)[0]
    if found := _ARXIV.search(text):
        return f"https://arxiv.org/abs/{found[1]}"
    inside = _in_hub(text)
    return None if inside is None else f"https://github.com/{inside}"


def _in_hub(text: str) -> str | None:
    """Return what a text begins with of GitHub: a file, a request, or a repository."""
    if found := _PINNED.match(text):
        return f"{found[1]}/blob/{found[2]}/{found[3]}{found[4] or ''}"
    if found := _FILE.match(text):
        return f"{found[1]}/blob/HEAD/{found[2]}"
    if found := _ASKED.match(text):  # a pull request is found as an issue, too
        return f"{found[1]}/issues/{found[2]}"
    found = _NAME.match(text)
    return found[1] if found else None


def address_in(text: str) -> str | None:
    """Return the first address that a source names in words; none where it names none."""
    words = [word.strip(AROUND) for word in text.split()]
    for at, word in enumerate(words):
        if word.startswith("https://"):
            return word
        if _SITE.fullmatch(word):
            return f"https://{word}"
        if word == "arXiv" and at + 1 < len(words):
            return page_of(f"arXiv {words[at + 1]}")
        if _REPOSITORY.fullmatch(word) and (found := _in_repository(word, words[at + 1:at + 2 + PATH])):
            return found
    return None


def _in_repository(name: str, behind: list[str]) -> str | None:
    """Return a file of a repository at its commit, the whole tree where its path is told in words, or a request."""
    for at, word in enumerate(behind):
        if found := _COMMIT.fullmatch(word):
            inside = f"blob/{found[1]}/{behind[0]}" if at == 1 else f"tree/{found[1]}"
            return f"https://github.com/{name}/{inside}"
    asked = _REQUEST.fullmatch(behind[2]) if behind[:2] == ["pull", "request"] and len(behind) > 2 else None
    return f"https://github.com/{name}/pull/{asked[1]}" if asked else None
