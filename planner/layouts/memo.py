"""What was worked out before: of rows by the columns that decide it, of whatever else by all values that do."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Callable, Sequence
from hashlib import sha256
from itertools import repeat
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from planner.layouts.table import Floats, Ints

Answer = TypeVar("Answer")
MOST = 2**18
"""Rows remembered at most: what one search of usual size asks for."""


class Memo:
    """Some numbers for each distinct combination of integer columns, up to `MOST` of them."""

    def __init__(self, width: int) -> None:
        """width: numbers a combination."""
        self._places: dict[bytes, int] = {}
        self._values = np.zeros((0, width))
        self._used = 0

    def codes(self, *columns: Ints) -> list[bytes]:
        """Return what stands for the combination of each row."""
        table = np.stack([np.asarray(column, np.int32) for column in columns], axis=1)
        found: list[bytes] = np.ascontiguousarray(table).view(np.dtype((np.void, 4 * len(columns))))[:, 0].tolist()
        return found

    def places(self, codes: list[bytes]) -> Ints:
        """Return where the numbers of each combination are, -1 where they are not known."""
        return np.fromiter(map(self._places.get, codes, repeat(-1)), np.int64, len(codes))

    def at(self, places: Ints) -> Floats:
        """Return the numbers at some places, shape (places, width)."""
        return self._values[places]

    def add(self, codes: list[bytes], values: Floats) -> None:
        """Remember the numbers of combinations, shape (codes, width), in place of what was known of them."""
        if len(self._places) + len(codes) > MOST:
            return
        start, end = self._used, self._used + len(codes)
        if end > len(self._values):
            # twice as much room, so that what is known is not copied each time
            self._values = np.concatenate([self._values, np.zeros((max(end, 64), self._values.shape[1]))])
        self._values[start:end], self._used = values, end
        self._places.update(zip(codes, range(start, end), strict=True))

    def recall(self, columns: Sequence[Ints], work: Callable[[Ints], Floats]) -> Floats:
        """Return the numbers of each distinct combination, shape (combinations, width).

        work: numbers of the combinations that are not known, by their places in `columns`, remembered from then on.
        """
        codes = self.codes(*columns)
        places = self.places(codes)
        found, unknown = np.zeros((len(codes), self._values.shape[1])), np.flatnonzero(places < 0)
        found[places >= 0] = self.at(places[places >= 0])
        if len(unknown):
            found[unknown] = work(unknown)
            self.add([codes[at] for at in unknown.tolist()], found[unknown])
        return found


class Memos:
    """The memos of whatever they are about, by key; gone with it, and no part of it where it is sent elsewhere."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[object, dict[object, Memo]] = WeakKeyDictionary()

    def of(self, about: object, key: object, width: int) -> Memo:
        """Return the memo of `about` with this key, a new one of `width` numbers a combination where there is none."""
        known = self._known.setdefault(about, {})
        if key not in known:
            known[key] = Memo(width)
        return known[key]


class ByValue(Generic[Answer]):
    """The answers used last, by the values of all that decides them."""

    def __init__(self, most: int, weigh: Callable[[Answer], int] = lambda answer: 1) -> None:
        """most: answers that are kept, or where they are weighed what they weigh together."""
        self.most, self.weigh, self._weight = most, weigh, 0
        self._known: OrderedDict[bytes, Answer] = OrderedDict()

    def recall(self, deciding: object, work: Callable[[], Answer]) -> Answer:
        """Return the answer to what `deciding` holds: that of `work` where it is not known.

        Values that are equal but shared among themselves in another way may count as others.
        """
        key = sha256(pickle.dumps(deciding)).digest()
        if key in self._known:
            self._known.move_to_end(key)
            return self._known[key]
        answer = self._known[key] = work()
        self._weight += self.weigh(answer)
        while self._weight > self.most:
            self._weight -= self.weigh(self._known.popitem(last=False)[1])
        return answer
