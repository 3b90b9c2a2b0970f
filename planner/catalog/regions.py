"""Names of regions: the part of the world that each is in, and which are built alike."""

from __future__ import annotations

import re

AREAS = {"us": "us useast uswest usgov northamerica virginia ohio oregon iowa california texas",
         "canada": "ca canada montreal toronto",
         "europe": "eu europe uk sweden france germany norway switzerland poland italy spain finland netherlands "
                   "ireland london paris frankfurt stockholm",
         "asia": "ap asia japan korea india singapore tokyo seoul mumbai"}
"""Parts of the world -> words in the names of regions there."""
_WORDS = {word: area for area, words in AREAS.items() for word in words.split()}
_ZONE = re.compile(r"^(.*[0-9])-?[a-f]$", re.ASCII)
"""A zone of a region: us-east-1a, us-central1-b."""
_DIRECTION = re.compile(r"north|south|east|west|central|[^a-z]", re.ASCII)


def area_of(region: str) -> str:
    """Return the part of the world that a region's name says it is in (us-west-2, westeurope); empty for another."""
    words = filter(None, _DIRECTION.split(region.lower()))
    return next((_WORDS[word] for word in words if word in _WORDS), "")


def region_of(zone: str) -> str:
    """Return the region of a zone, and any other name as it is, in small letters."""
    return _ZONE.sub(r"\1", zone.lower())


def form(region: str) -> str:
    """Return how a name is built of letters, numbers and dashes; westus2 is built as eastus is."""
    letters = re.sub(r"[a-z]+", "a", region.lower())
    return re.sub(r"\d+", "0", letters) if "-" in letters else letters.rstrip("0123456789")
