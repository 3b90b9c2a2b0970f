"""Replicas: the rules of layouts, the largest rate within a level, and columns that another matches."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from planner.catalog.load import Catalog
from planner.jobs.columns import ReplicaColumn, Role
from planner.jobs.serving.fronts import undominated
from planner.jobs.serving.rates import Targets, largest, layouts, span, work
from planner.money.rent import usual_candidate
from planner.physics.serving.deployment import Deployment, Replicas, deployment_of
from planner.physics.serving.formats import format_of
from planner.physics.serving.level import Stream, stream_of
from planner.scenario.lengths import Length
from planner.solver.fleet.cover import cover
from planner.solver.fleet.covering import Cover, NodeSupply, Supplied

CATALOG = Catalog()
NONE = Counter[str]()


def on(model: str, node: str, name: str = "bf16") -> Deployment:
    """Return a model on a node type as the newest vLLM runs it."""
    candidate, held = usual_candidate(CATALOG.node(node), CATALOG), CATALOG.model(model)
    weights = format_of(CATALOG.formats, name, held)
    assert weights is not None
    speed = CATALOG.speeds("vllm").release(None, candidate.gpu.architecture)
    return deployment_of(CATALOG, held, name, weights, CATALOG.formats.cache("bf16"), (candidate,), speed)


def stream(prompt: float = 1000, answer: float = 200, cv: float = 0.0, **more: float) -> Stream:
    """Return requests of these lengths; Poisson where nothing is said."""
    given = {"input_cv": cv, "output_cv": cv, "gap_cv": 1.0, "hits": 0.0, "drafts": 0, "accepted": 0.0} | more
    lengths = Length("mean", prompt, cv).quantile, Length("mean", answer, cv).quantile
    return stream_of(*lengths, input=prompt, output=answer, **given)  # type: ignore[arg-type]


def row(tp: int = 1, pp: int = 1, ep: int = 1, dp: int = 1) -> Replicas:
    """Return a table of one layout."""
    return Replicas(*(np.array([degree]) for degree in (0, tp, pp, ep, dp)))


def legal(model: str, node: str) -> tuple[set[tuple[int, int, int, int]], Counter[str]]:
    """Return tp, pp, ep, dp of the legal layouts, and what was removed."""
    removed: Counter[str] = Counter()
    found = layouts(CATALOG.model(model), usual_candidate(CATALOG.node(node), CATALOG), removed)
    return set(zip(found.tp.tolist(), found.pp.tolist(), found.ep.tolist(), found.dp.tolist(), strict=True)), removed


def test_a_dense_model_has_no_copies_of_attention_and_a_mixture_has() -> None:
    assert {(ep, dp) for _, _, ep, dp in legal("llama-3.1-8b", "dgx-h100")[0]} == {(1, 1)}
    assert {ep for _, _, ep, dp in legal("deepseek-v3", "dgx-h100")[0] if dp == 8} == {1, 8}


LEVEL = Targets((2.0, 0.95), (0.05, 0.95))


@pytest.mark.parametrize(("d", "one", "role", "level"), [
    (on("llama-3.3-70b", "dgx-h100"), row(4), "whole", LEVEL),
    (on("llama-3.3-70b", "dgx-h100"), row(8), "whole", Targets((0.6, 0.95), None)),
    (on("llama-3.1-8b", "l4-1x"), row(), "whole", Targets(None, (0.12, 0.95))),
    (on("llama-3.1-8b", "dgx-h100", "fp8"), row(), "whole", Targets(None, None)),
    (on("deepseek-v3", "dgx-h200", "fp8"), row(1, 1, 8, 8), "whole", Targets((3.0, None), (0.08, 0.5))),
    (on("llama-3.3-70b", "dgx-h100"), row(4), "prefill", LEVEL),
    (on("llama-3.3-70b", "dgx-h100"), row(4), "decode", LEVEL)])
def test_the_largest_rate_is_that_of_a_fine_scan(d: Deployment, one: Replicas, role: Role, level: Targets) -> None:
    asked, most = stream(cv=0.5), np.full(1, 200.0)
    rate, load, crowd = largest(d, role, one, asked, level, most)
    low, high = span(role, asked, most)
    scan = np.geomspace(low[0], high[0], 4000)
    found = work(d, role, asked)(one.take(np.zeros(len(scan), np.int64)), scan)
    good = found.crowd <= most
    if level.ttft and role != "decode":
        good &= found.ttft_at(level.ttft[1]) <= level.ttft[0]
    if level.tpot and role != "prefill":
        good &= found.tpot_at(level.tpot[1]) <= level.tpot[0]
    first_miss = int(np.argmin(good)) if not good.all() else len(scan)
    best = float(found.rate[:first_miss].max(initial=0.0))
    assert best > 0
    # rates rise with loads but for dents at the edges of kernels' tiles
    assert rate[0] == pytest.approx(best, rel=0.02)
    again = work(d, role, asked)(one, load)
    assert again.crowd[0] == pytest.approx(crowd[0])
    assert crowd[0] <= most[0]
    assert again.rate[0] == pytest.approx(rate[0])


def test_a_level_that_nothing_holds_has_no_rate() -> None:
    rate, *_ = largest(on("llama-3.3-70b", "dgx-h100"), "whole", row(4), stream(), Targets((0.001, 0.95), None),
                      np.full(1, 200.0))
    assert rate[0] == 0


def test_a_wider_level_never_lowers_the_rate() -> None:
    d, most = on("llama-3.3-70b", "dgx-h100"), np.full(2, 200.0)
    both = Replicas(*(np.array(column) for column in ([0, 0], [4, 8], [1, 1], [1, 1], [1, 1])))
    rates = [largest(d, "whole", both, stream(), Targets((2.0 * wider, 0.95), (0.04 * wider, 0.95)), most)[0]
             for wider in (0.7, 1, 1.5, 3)]
    assert (np.diff(rates, axis=0) >= 0).all()


def random_columns(random: Random) -> list[ReplicaColumn]:
    return [ReplicaColumn(0, random.choice(["bf16", "fp8"]), "whole", random.choice([1, 2, 4, 8]),
                          random.choice([1, 1, 2]), 1, 1, random.uniform(1, 9), 1.0, 9.0)
            for _ in range(random.randint(2, 7))]


def covered(columns: list[ReplicaColumn], like: Cover) -> int | None:
    made = tuple(Supplied(key, 0, 0, c.role, int(c.rate * 1e3), c.gpus) for key, c in enumerate(columns))
    return cover(replace(like, columns=made)).value


def test_columns_that_another_matches_never_change_the_optimum() -> None:
    random, dropped = Random(3), 0
    for _ in range(60):
        found = random_columns(random)
        kept = undominated(found)
        dropped += len(found) - len(kept)
        node, spares = random.choice([4, 8]), random.choice([0, 0, 1, 2])
        like = Cover(((random.randint(1000, 30_000),),), (spares,), (), (
            NodeSupply(0, lambda nodes: 5 * nodes, random.choice([2, 4, 20]), node, 3),),
            objective=random.choice(["cost", "gpus"]), max_gpus=random.choice([None, None, 16]))
        assert covered(kept, like) == covered(found, like), (found, like)
    assert dropped > 40


def test_roles_do_not_replace_each_other() -> None:
    one = ReplicaColumn(0, "bf16", "prefill", 1, 1, 1, 1, 5.0, 1.0, 9.0)
    assert len(undominated([one, replace(one, role="decode", rate=1.0)])) == 2
