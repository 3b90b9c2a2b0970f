"""Time of moving tokens to their experts and back: two all-to-alls a direction of every mixture's layer.

A token of k experts out of E, spread evenly over the ranks of an expert-parallel group, goes out once for each expert,
or, where the stack deduplicates (DeepEP, HybridEP), once to each node and from there once to each rank that has one of
its experts. A share f of the experts holds none of a token's k with probability C(E - fE, k) / C(E, k).
Source: deepseek-ai/DeepEP README, "normal kernels"; DeepSeek-V3 report (arXiv 2412.19437), section 3.2.2.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.layouts.table import Floats, Layouts
from planner.physics.collectives import all_to_all, node_members
from planner.physics.layers import Experts, LayerKind
from planner.physics.training.parameters import sequence_split
from planner.physics.training.question import Question


def dispatch(question: Question, rows: Layouts, kinds: Sequence[tuple[LayerKind, float]]) -> Floats:
    """Return seconds of a layer and micro-batch, the weighted sum over `kinds`: forward and backward."""
    total = np.zeros(len(rows))
    mixtures = [(kind.experts, share) for kind, share in kinds if kind.experts is not None]
    if mixtures:
        members = node_members(question.candidates, rows.candidate, rows.ep, rows.expert_split)
        for experts, share in mixtures:
            total = total + share * 4 * _one_way(question, rows, experts, members)
    return total


def _one_way(question: Question, rows: Layouts, experts: Experts, members: Floats) -> Floats:
    """Return seconds of one all-to-all over the activations of a micro-batch."""
    tokens = rows.micro_batch * question.sequence_length / rows.cp / sequence_split(question, rows)
    ranks = rows.ep.astype(np.float64)
    nodes = ranks / members
    run = question.stack.experts
    assert run is not None, "question_of refuses mixtures on stacks without experts"
    payload = question.element_bytes(rows.precision) * tokens * experts.hidden * run.imbalance
    if run.deduplicated:
        # what arrives from other nodes is passed on inside, so every copy but those for the rank itself crosses there
        to_ranks, to_nodes = ranks * (1 - missed(experts, ranks)), nodes * (1 - missed(experts, nodes))
    else:
        to_nodes = np.full_like(ranks, experts.per_token)
        to_ranks = to_nodes / nodes
    return all_to_all(question.candidates, rows.candidate, rows.ep, rows.expert_split,
                      payload * to_ranks * (members - 1) / members, payload * to_nodes * (nodes - 1) / nodes)


def missed(experts: Experts, parts: Floats) -> Floats:
    """Return the probability that none of a token's experts is in one of `parts` equal parts of them."""
    held, missed = experts.count / parts, np.ones_like(parts)
    for chosen in range(experts.per_token):
        missed = missed * np.maximum(0.0, experts.count - held - chosen) / (experts.count - chosen)
    return missed
