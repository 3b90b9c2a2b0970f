"""The chunks of a pipeline: how many layers each has, and in torchtitan's words which."""

from __future__ import annotations

from itertools import accumulate

from planner.launch.work import Work


def layers_of_chunks(work: Work) -> list[int]:
    """Return the layers of every chunk, in the order in which the sequence passes them.

    A pass through the stages takes as long as its largest chunk, so that a stage of fewer layers is smaller in as few
    passes as can be: in the first, of which most are in flight, and the last stage in the last, beside the head. Layers
    that come before all others are beside those of the first chunk.
    """
    layout, lead = work.layout, work.model.leading_layers
    held = [layers - (0 if stage else lead) for stage, layers in enumerate(work.stage_layers)]
    least, more = divmod(max(held), layout.vpp)
    largest = [least] * (layout.vpp - more) + [least + 1] * more
    counts = [_shrunk(largest, max(held) - layers, last=stage == layout.pp - 1) for stage, layers in enumerate(held)]
    counts[0][0] += lead
    return [counts[stage][chunk] for chunk in range(layout.vpp) for stage in range(layout.pp)]


def _shrunk(largest: list[int], fewer: int, *, last: bool) -> list[int]:
    """Return the chunks of a stage that has so many layers fewer than the fullest, one of each in turn."""
    chunks, turns = [*largest], [*range(len(largest))]
    turns = [turns[-1], *turns[:-1]] if last else turns
    while fewer:
        for chunk in turns:
            taken = min(1, fewer, chunks[chunk])
            chunks[chunk] -= taken
            fewer -= taken
    return chunks


def chunks_of(work: Work) -> list[list[str]]:
    """Return the modules of every chunk, in the order in which the sequence passes them."""
    counts = layers_of_chunks(work)
    parts = [[f"layers.{layer}" for layer in range(end - count, end)]
             for count, end in zip(counts, accumulate(counts), strict=True)]
    parts[0].insert(0, "tok_embeddings")
    parts[-1] += ["norm", "lm_head"]
    return parts
