"""Training asked for by samples: tokens, lengths, and whether samples are packed or padded follow from them."""

from __future__ import annotations

from planner.catalog.recipes import Recipes
from planner.scenario.dataset import read_samples
from planner.scenario.default import Default, Defaults
from planner.scenario.files import found
from planner.scenario.workload import Training
from planner.units import show_count
from planner.yaml_io import Document


def in_tokens(work: Training, recipes: Recipes, document: Document, at: tuple[str | int, ...] = ("workload",)
              ) -> tuple[Training, Defaults]:
    """Return a job that says its tokens, and where they are from; one asked for by tokens or by neither as it is.

    `at` is where the document has it.

    Samples are padded to the longest length that is known, of the file or as stated, unless they are to be packed;
    where none is known they are packed. Raises InputError.
    """
    longest: int | None
    if work.dataset is not None:
        path = found(work.dataset, document, (*at, "dataset"))
        read = read_samples(path, work.tokenizer, recipes.text.characters_per_token)
        lengths = read.cut(work.sequence_length)
        count, longest, total, how = len(lengths), max(lengths), sum(lengths), read.how
    elif work.samples is not None and work.mean_length is not None:
        count, longest, total = work.samples, work.sequence_length, work.samples * work.mean_length
        how = f"of {work.mean_length:,} tokens"
    else:
        return work, []
    epochs = work.epochs or 1.0
    packed = longest is None if work.packing is None else work.packing
    mean = max(1, round(total / count))
    tokens = round(epochs * (total if packed else count * mean))
    said = [Default(name="tokens", value=show_count(tokens),
                    why=f"{epochs:g} {'epoch' if epochs == 1 else 'epochs'} of {count:,} samples, {how}")]
    if work.packing is None:
        share = "" if packed or longest is None else f", {mean / longest:.0%} of their tokens real"
        said.append(Default(name="packing", value="packed" if packed else f"padded to {longest:,}{share}",
                            why="no longest sample is known" if packed else "packing fills sequences with samples"))
    update = {"epochs": None, "samples": None, "dataset": None, "tokenizer": None, "packing": None, "tokens": tokens,
              "mean_length": None if packed else mean}
    if work.dataset is not None and not packed:
        update["sequence_length"] = longest
    return work.model_copy(update=update), said
