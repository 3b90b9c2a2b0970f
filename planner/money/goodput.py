"""What failures take from a run: checkpoints, lost work, restarts; the spare nodes that keep it going, or their lack.

Checkpoint interval after Young 1974 and Daly 2006: sqrt(2 x write time x mean time between interruptions).
"""

from __future__ import annotations

import math

import numpy as np

from planner.catalog.calibration import Reliability
from planner.layouts.table import Floats, Ints


def interruptions(facts: Reliability, gpus: Ints, nodes: Ints, checkpoint_bytes: float,
                  reclaims: Floats) -> tuple[Floats, Floats, Floats]:
    """Return seconds between interruptions, from checkpoint to checkpoint, and to write one; one value a row.

    checkpoint_bytes: weights, master weights and optimizer states of the whole model. reclaims: node-hours until a
    provider takes a node back, as of spot; inf where none does.
    """
    between: Floats = 3600 / (gpus / facts.gpu_hours_per_interruption + nodes / reclaims)
    write = np.asarray(checkpoint_bytes / (facts.checkpoint_write_per_node * nodes), np.float64)
    interval: Floats = np.sqrt(2 * write * between)
    return between, interval, write


def goodput(facts: Reliability, gpus: Ints, nodes: Ints, checkpoint_bytes: float, reclaims: Floats) -> Floats:
    """Return the share of time that makes progress, one value a row; between 0 and 1. For `interruptions`."""
    between, interval, write = interruptions(facts, gpus, nodes, checkpoint_bytes, reclaims)
    lost = write / interval + interval / 2 / between + facts.restart / between
    share: Floats = 1 / (1 + lost)
    return share


def spare_nodes(facts: Reliability, gpus: Ints, nodes: Ints, reclaims: Floats) -> Ints:
    """Return how many spare nodes cover those under repair or taken back, with the stated confidence (Poisson)."""
    under_repair = _under_repair(facts, gpus, nodes, reclaims)
    # below the first term lies nothing that counts, and the term itself is no number too small to hold
    spares: Ints = np.maximum(0, under_repair - 12 * np.sqrt(under_repair) - 20).astype(np.int64)
    term = np.where(spares > 0, _poisson(under_repair, spares), np.exp(-under_repair))
    covered = term.copy()
    at = spares.copy()
    # a sum that rounding keeps below a confidence near one ends with the terms
    while (short := (covered < facts.spare_confidence) & (term > 0)).any():
        at += 1
        spares[short] += 1
        term = term * under_repair / at
        covered = covered + term
    return spares


def running(facts: Reliability, gpus: Ints, nodes: Ints, reclaims: Floats, spares: Ints) -> Floats:
    """Return the share of time in which no more nodes are under repair than there are spares, one value a row.

    A run that waits fails no further, so that this is Erlang's loss system of spares + 1 servers: whatever the repair
    times, the run waits for the share that is lost (Erlang B).
    """
    load = _under_repair(facts, gpus, nodes, reclaims)
    lost = np.ones(len(load))
    for servers in range(1, int(spares.max(initial=0)) + 2):
        lost = np.where(servers <= spares + 1, load * lost / (servers + load * lost), lost)
    share: Floats = 1 - lost
    return share


def _under_repair(facts: Reliability, gpus: Ints, nodes: Ints, reclaims: Floats) -> Floats:
    """Return how many nodes are under repair or taken back on average."""
    mean: Floats = (gpus * facts.hardware_share * facts.repair / 3600 / facts.gpu_hours_per_interruption
                    + nodes / reclaims * facts.replace / 3600)
    return mean


def _poisson(mean: Floats, count: Ints) -> Floats:
    """Return the probability of each count."""
    factorials = np.array([math.lgamma(number + 1) for number in count.tolist()])
    with np.errstate(divide="ignore", invalid="ignore"):
        chance: Floats = np.exp(count * np.log(mean) - mean - factorials)
    return chance
