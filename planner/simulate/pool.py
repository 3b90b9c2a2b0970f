"""The cache of one replica: blocks that sequences hold, and prompt blocks kept for later prompts.

Decoding sequences grow one token a step, so each takes a new block every `block` steps: how many are taken in k steps
follows from their phases, the count of cached tokens when the step counter stood at 0, modulo the block.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence


class CachePool:
    """Blocks of the cache in use, and how they grow with the decode steps. Counts are blocks unless named tokens."""

    __slots__ = ("apart", "block", "decoding", "free", "phases", "size")

    def __init__(self, tokens: int, block: int, apart: int = 0) -> None:
        """apart: tokens that each sequence holds beside its own, from the first to the last."""
        self.block, self.apart = block, apart
        self.size = self.free = tokens // block
        self.decoding = 0
        """Sequences that grow."""
        self.phases = [0] * block

    def blocks(self, tokens: int) -> int:
        """Return the blocks that hold that many tokens of one sequence."""
        return -(-(tokens + self.apart) // self.block)

    def join(self, tokens: int, counter: int) -> None:
        """Let a sequence of `tokens` cached grow from this value of the step counter on."""
        self.decoding += 1
        self.phases[(tokens + self.apart - counter) % self.block] += 1

    def leave(self, tokens: int, counter: int) -> None:
        """Take a growing sequence of `tokens` cached out, and free its blocks."""
        self.decoding -= 1
        self.phases[(tokens + self.apart - counter) % self.block] -= 1
        self.free += self.blocks(tokens)

    def growth(self, steps: int, counter: int) -> int:
        """Return the blocks that this many more decode steps take."""
        if self.block == 1:
            return steps * self.decoding
        cycles, rest = divmod(steps, self.block)
        taken = cycles * self.decoding
        for step in range(counter, counter + rest):
            taken += self.phases[-step % self.block]
        return taken

    def grows(self, counter: int, beside: int = 0) -> bool:
        """Say whether the free blocks hold `beside` and what one more decode step takes."""
        left = self.free - beside
        return self.decoding <= left or self.phases[-counter % self.block] <= left

    def lasting(self, steps: int, counter: int) -> int:
        """Return how many decode steps the free blocks last for, at most `steps`."""
        if -(-steps // self.block) * self.decoding <= self.free:
            return steps
        cycles, left = divmod(self.free, self.decoding)
        lasting = cycles * self.block
        while lasting < steps and (left := left - self.phases[-(counter + lasting) % self.block]) >= 0:
            lasting += 1
        return lasting


class PrefixCache:
    """Hashes of prompt blocks, least recently used out first.

    Holds `size` blocks beside what running sequences hold: sharing among these, and the room that answers take from
    kept prefixes, are left out.
    """

    __slots__ = ("held", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.held: OrderedDict[int, None] = OrderedDict()

    def match(self, hashes: Sequence[int]) -> int:
        """Return how many blocks from the front of the prompt are held."""
        held = self.held
        for matched, block in enumerate(hashes):
            if block not in held:
                return matched
        return len(hashes)

    def keep(self, hashes: Sequence[int]) -> None:
        """Hold these blocks of one prompt as the most recently used."""
        held = self.held
        # back to front, so that what leaves first is the tail of a prompt: without its front it matches nothing
        for block in reversed(hashes):
            held[block] = None
            held.move_to_end(block)
        while len(held) > self.size:
            held.popitem(last=False)
