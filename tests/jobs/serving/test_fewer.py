"""One replica less is tried by replay, of few as of many, in an hour of a day as without one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

import pytest

from planner.jobs.columns import Pick
from planner.jobs.job import Tried
from planner.jobs.settle import _fewer_by_hour, _settled
from planner.jobs.shown import Trials
from planner.jobs.solved import Solved
from tests.jobs.serving.cases import solved

DAY = [0.2] * 8 + [1, 1, 0.6] + [0.2] * 13
Missed = Callable[[Trials, Solved], Iterator[Any]]


def counts(best: Solved) -> list[int]:
    """Return the replicas of each hour."""
    return [sum(pick.replicas for pick in best.fleet.picks_at(best.solution, hour)) for hour in range(24)]


def fewer(monkeypatch: pytest.MonkeyPatch, missed: Missed) -> tuple[Trials, list[int], list[int]]:
    """Return what a search knows after it, and the replicas of each hour before and after, where a replay says that."""
    monkeypatch.setattr(Trials, "misses", missed)
    search = Trials(solved(rate=180, tpot="30 ms", day=DAY), None, changing=False)
    best = search.solve()
    return search, counts(best), counts(_fewer_by_hour(search, best))


def test_hours_that_hold_with_less_get_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """The replay of these hours never misses; that of the busiest always does."""
    def missed(search: Trials, best: Solved) -> Iterator[Any]:
        there = counts(best)
        return iter([there] if there[8] < before[8] else [])

    before = counts(Trials(solved(rate=180, tpot="30 ms", day=DAY), None, changing=False).solve())
    _, seen, after = fewer(monkeypatch, missed)
    assert seen == before
    assert 1 < before[0] < before[8]
    assert after[8:10] == before[8:10]
    assert after[0] == after[10] == 1


def test_what_a_replay_refutes_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    search, before, after = fewer(monkeypatch, lambda *_: iter([object()]))
    assert after == before
    assert search.needs == {}


def test_a_replica_less_is_asked_no_more_than_the_rest_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    search, _, after = fewer(monkeypatch, lambda *_: iter([]))
    best = search.solve()
    assert counts(best) == after
    demand = search.start.fleet.demands[0, 0]
    for (_, hour), factor in search.needs.items():
        picks = [pick for pick in best.fleet.picks_at(best.solution, hour) if isinstance(pick, Pick)]
        assert sum(pick.replicas * pick.column.rate for pick in picks) >= demand.needed * DAY[hour] * factor
        assert factor < 1


@pytest.mark.parametrize(("enough", "unsure"), [*((enough, ()) for enough in range(9, 19)), (9, (11, 12)), (10, (11,)),
                                                (11, range(12, 15))])
def test_the_fewest_replicas_that_replay_well_are_found(enough: int, unsure: Collection[int],
                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    """However far below what the formula says, though what a miss shows of a replica's rate is 6% too little, and
    though replays of some more replicas vary too much to be sure.
    """
    def missed(search: Trials, best: Solved) -> Iterator[Any]:
        picks = [pick for pick in best.picks if isinstance(pick, Pick)]
        needed, replicas = search.start.fleet.demands[0, 0].needed, sum(pick.replicas for pick in picks)
        rates = tuple((needed / replicas, needed * min(0.94 / enough, 0.97 / replicas)) for _ in picks)
        asked, held = zip(*rates, strict=True)
        return iter([((0, 0), 0, picks, Tried(False, asked, held, 1, unsure=replicas in unsure))]
                    if replicas < enough or replicas in unsure else [])

    monkeypatch.setattr(Trials, "misses", missed)
    search = Trials(solved(rate=310, tpot="30 ms"), None)
    computed = search.solve()
    assert 10 < sum(pick.replicas for pick in computed.picks) < 17
    assert sum(pick.replicas for pick in _settled(search, computed).solved.picks) == enough


def test_a_fleet_of_several_kinds_does_with_one_replica_less_where_the_others_take_its_share(
        monkeypatch: pytest.MonkeyPatch) -> None:
    """By formula an H100 and an A100 serve 24 requests/s; by replay the H100 alone, 10% above its rate, does too."""
    def missed(search: Trials, best: Solved) -> Iterator[Any]:
        picks = [pick for pick in best.picks if isinstance(pick, Pick)]
        asked = tuple(pick.column.rate for pick in picks)
        most = [1.1 * search.computed.get(search.key((0, 0), pick.column), 0.0) for pick in picks]
        held = tuple(min(mine, rate) for mine, rate in zip(most, asked, strict=True))
        return iter([] if held == asked else [((0, 0), 0, picks, Tried(False, asked, held, 1))])

    two = solved(rate=24, tpot="30 ms", ttft="1 s", hardware={"candidates": ["h100-sxm-1x", "a100-sxm-80gb-1x"]})
    monkeypatch.setattr(Trials, "misses", missed)
    search = Trials(two, None)
    best = search.solve()
    mixed = [pick.replicas for pick in best.picks if isinstance(pick, Pick)]
    assert mixed == [1, 1]
    asked = [search._one_out(best) for _ in range(3)]
    assert [len(each) for each in asked] == [2, 2, 0]
    # the weaker goes first, and the other answers all of it
    whole = sum(pick.column.rate for pick in best.picks if isinstance(pick, Pick))
    assert max(asked[0].values()) == pytest.approx(whole, rel=0.02)
    settled = _settled(Trials(two, None), best).solved
    assert [pick.replicas for pick in settled.picks if isinstance(pick, Pick)] == [1]
