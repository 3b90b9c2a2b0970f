"""What failures take from a run: checkpoints, lost work, restarts; the spare nodes that keep it going, or their lack.

Checkpoint interval after Young 1974 and Daly 2006: sqrt(2 x write time x mean time between interruptions).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

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
    """Return with how many spare nodes a run takes the fewest node-hours, one value a row."""
    found = np.zeros(len(nodes), np.int64)
    for rows, _ in paying(facts, gpus, nodes, reclaims):
        found[rows] += 1
    return found - 1


def paying(facts: Reliability, gpus: Ints, nodes: Ints, reclaims: Floats) -> Iterator[tuple[Ints, Floats]]:
    """Yield the rows that take fewer node-hours with no spare node (all), with one, and so on, than with one less, and
    the share of time that these do not wait for repairs.

    From the first spare on that adds more node-hours than it saves so does every further one: the time that a run does
    not wait is concave in its spares.
    """
    rows: Ints = np.arange(len(nodes))
    load: Floats = _under_repair(facts, gpus, nodes, reclaims)
    least, lost, spares = np.full_like(load, np.inf), np.ones_like(load), 0
    while len(rows):
        share, lost = _erlang(load, lost, spares + 1)
        hours: Floats = (nodes[rows] + spares) / share
        pays = hours < least
        if not pays.all():
            rows, load, lost, share, hours = rows[pays], load[pays], lost[pays], share[pays], hours[pays]
        yield rows, share
        least, spares = hours, spares + 1


def running(facts: Reliability, gpus: Ints, nodes: Ints, reclaims: Floats) -> Iterator[Floats]:
    """Yield the share of time in which no more nodes are under repair than there are spares: for none, one, and so on.

    A run that waits fails no further, so that this is Erlang's loss system of spares + 1 servers: whatever the repair
    times, the run waits for the share that is lost (Erlang B). One value a row.
    """
    load = _under_repair(facts, gpus, nodes, reclaims)
    lost = np.ones(len(load))
    for servers in count(1):
        share, lost = _erlang(load, lost, servers)
        yield share


def _erlang(load: Floats, lost: Floats, servers: int) -> tuple[Floats, Floats]:
    """Return the shares of Erlang's system that find a server and that are lost, from those lost with one less."""
    all_ = servers + load * lost
    return servers / all_, load * lost / all_


def _under_repair(facts: Reliability, gpus: Ints, nodes: Ints, reclaims: Floats) -> Floats:
    """Return how many nodes are under repair or taken back on average."""
    mean: Floats = (gpus * facts.hardware_share * facts.repair / 3600 / facts.gpu_hours_per_interruption
                    + nodes / reclaims * facts.replace / 3600)
    return mean
