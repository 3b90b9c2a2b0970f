"""The chunks of a pipeline: how many layers each has, and in torchtitan's words which."""

from __future__ import annotations

from itertools import accumulate

from planner.launch.work import Work


def layers_of_chunks(work: Work) -> list[int]:
    """Return the layers of every chunk, in the order in which the sequence passes them.

    Chunks are equal where embedding and head count as a layer each (layouts/rules.py, even_chunks); layers that come
    before all others are beside those of the first.
    """
    layout, lead = work.layout, work.model.leading_layers
    counts = []
    for stage, layers in enumerate(work.stage_layers):
        least, more = divmod(layers if stage else layers - lead, layout.vpp)
        sizes = [least + 1] * more + [least] * (layout.vpp - more)
        counts.append(sizes if stage else [sizes[-1] + lead, *sizes[-2::-1]])
    return [counts[stage][chunk] for chunk in range(layout.vpp) for stage in range(layout.pp)]


def chunks_of(work: Work) -> list[list[str]]:
    """Return the modules of every chunk, in the order in which the sequence passes them."""
    counts = layers_of_chunks(work)
    parts = [[f"layers.{layer}" for layer in range(end - count, end)]
             for count, end in zip(counts, accumulate(counts), strict=True)]
    parts[0].insert(0, "tok_embeddings")
    parts[-1] += ["norm", "lm_head"]
    return parts
