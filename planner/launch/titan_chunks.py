"""The chunks of a pipeline in torchtitan's words: the modules of each."""

from __future__ import annotations

from planner.launch.work import Work


def chunks_of(work: Work) -> list[list[str]] | None:
    """Return the modules of every chunk, in the order in which the sequence passes them; none where they are unequal.

    Embedding and head count as a layer each where the layers alone do not divide.
    """
    layout, layers, chunks = work.layout, work.model.layers, work.layout.pp * work.layout.vpp
    if layout.vpp == 1:
        counts = list(work.stage_layers)
    elif layers % chunks == 0:
        counts = [layers // chunks] * chunks
    elif (layers + 2) % chunks == 0:
        counts = [(layers + 2) // chunks - (at in (0, chunks - 1)) for at in range(chunks)]
    else:
        return None
    starts = [sum(counts[:at]) for at in range(chunks)]
    parts = [[f"layers.{layer}" for layer in range(start, start + count)]
             for start, count in zip(starts, counts, strict=True)]
    parts[0].insert(0, "tok_embeddings")
    parts[-1] += ["norm", "lm_head"]
    return parts
