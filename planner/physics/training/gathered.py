"""What sharding holds besides the shards: gathered weights, and gradients that are not reduced yet.

ZeRO-3 holds the layer at work and those prefetched, the tables of the root unit and the gradient of a layer. FSDP that
does not reshard (stage 2) holds a 16-bit copy of all weights of the rank. Micro-batches that accumulate without a
reduction (FSDP's no_sync, and any pipeline under FSDP) keep the gradients of all weights of the rank whole.
Sources: PyTorch fully_shard (reshard_after_forward, set_requires_gradient_sync), Rajbhandari et al. 2020
(arXiv 1910.02054), DeepSpeed stage3_max_live_parameters.
"""

from __future__ import annotations

import numpy as np

from planner.layouts.table import Floats, Layouts, Mask
from planner.physics.training.question import Question


def gathered_bytes(question: Question, rows: Layouts, layer: Floats, rank: Floats, tables: Floats) -> Floats:
    """Return bytes that one GPU holds gathered or unreduced at the peak.

    layer, rank, tables: parameters of one layer, of all layers of a stage, and of embedding and head, before ZeRO
    shards them.
    """
    stack, tuning = question.stack, question.tuning
    width = question.element_bytes(rows.precision)
    # a frozen base is gathered as it is stored
    stored = np.minimum(width, tuning.base_bytes) if tuning.quantized else width
    unit = _unit(question, rows, layer, stored) + width * tables / (2 if stack.tables_apart else 1)
    copy = stored * rank + width * tables if stack.fully_sharded else np.zeros(len(rows))
    weights = np.where(rows.zero == 3, unit, np.where(rows.zero == 2, copy, 0.0))
    return weights + _unreduced(question, rows, layer, rank, tables, width)


def _unit(question: Question, rows: Layouts, layer: Floats, stored: Floats | float) -> Floats:
    """Return bytes of the gathered layers, or matrix by matrix of as many as the stack keeps alive, one at least."""
    weights, live = question.stack.gathered_layers * layer, question.stack.live_parameters
    if live is not None:
        weights = np.minimum(weights, np.maximum(largest_matrix(question, rows), live))
    return weights * stored


def _unreduced(question: Question, rows: Layouts, layer: Floats, rank: Floats, tables: Floats,
               width: Floats | float) -> Floats:
    """Return bytes of gradients before their reduction: those of one layer, or accumulated those of the rank."""
    stack, tuning = question.stack, question.tuning
    trained = tuning.trains_base or stack.flat_gradients
    if not trained:
        return np.zeros(len(rows))
    live_layer, live = layer, stack.live_parameters
    if live is not None:
        live_layer = np.minimum(live_layer, np.maximum(largest_matrix(question, rows), live / 2))
    # the gradient itself, and the copy that is reduced
    single = np.where(rows.zero == 3, 2 * width * live_layer if tuning.trains_base else width * live_layer, 0.0)
    accumulated = stack.reduce_bytes * (rank + tables)
    return np.where(keeps_unreduced(question, rows), accumulated, single)


def keeps_unreduced(question: Question, rows: Layouts) -> Mask:
    """Say where gradients of all weights of the rank stay whole till the last micro-batch."""
    piped = (rows.pp > 1) & question.stack.fully_sharded
    kept: Mask = (rows.zero >= 2) & ((rows.no_sync == 1) | piped)
    return kept


def largest_matrix(question: Question, rows: Layouts) -> Floats:
    """Return parameters of the largest matrix of the model on one GPU."""
    kinds = (*question.shape.kinds, *question.shape.lead)
    largest: Floats = max(kind.largest_matrix for kind, _ in kinds) / rows.tp
    return largest
