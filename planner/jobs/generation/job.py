"""A service of images or clips: the replicas that make them within the latency target, and its part of a fleet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import le
from typing import Any

from planner.answer.assignment import Assignment
from planner.answer.bought import bought_of
from planner.answer.level import Replayed
from planner.answer.schema import Infeasible, Search
from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.jobs.columns import Columns, Demand, Pick, Processed, ReplicaColumn
from planner.jobs.generation.assignment import generation_assignment
from planner.jobs.generation.choices import GenerationChoices
from planner.jobs.generation.lacking import nearest
from planner.jobs.generation.misses import misses
from planner.jobs.generation.options import CallWay, sure_bytes
from planner.jobs.generation.queue import BUSIEST, Queue, alone, fewest
from planner.jobs.generation.replicas import Key, column_of, image_service, key_of, target_of, ways_on
from planner.jobs.job import NOTHING_HELD, Change, Depth, Held, Knob, Picked, Replaying, Short, Terms, Tried
from planner.jobs.serving.answers import loads
from planner.jobs.serving.assignment import ReplicaPlace
from planner.jobs.serving.day import changing
from planner.jobs.serving.knobs import knobs_of
from planner.jobs.serving.replay import replay, replayed, requests_of
from planner.jobs.serving.service import Service
from planner.jobs.serving.trial import tried, tried_day
from planner.scenario.default import Defaults
from planner.scenario.generation import Generation
from planner.simulate.trace import Trace
from planner.solver.progress import SoFar, say
from planner.solver.settings import UNLIMITED, Effort
from planner.units import DAY, MONTH_DAYS


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaWays(Columns):
    """Replicas, the way of each, and what comes nearest where nothing fits or is fast enough."""

    made: Mapping[Key, CallWay]
    leanest: CallWay | None = None
    soonest: CallWay | None = None
    looked: int = 0


@dataclass(frozen=True, slots=True)
class GenerationJob(GenerationChoices):
    """A workload of kind generation at a rate, looked up."""

    name: str
    asked: Generation
    catalog: Catalog
    terms: Terms
    confidence: float
    _known: dict[tuple[object, ...], ReplicaWays] = field(default_factory=dict, compare=False, repr=False)
    """Columns by candidates, what is held and the load."""

    @property
    def has_requests(self) -> bool:
        """Whether it is a service: it is."""
        return True

    @property
    def has_trace(self) -> bool:
        """Whether the requests are those of a trace."""
        return False

    @property
    def can_miss(self) -> bool:
        """Always: without a target what replicas make at most is tried."""
        return True

    def under(self, terms: Terms) -> GenerationJob:
        """Return the job on other terms; candidates keep their numbers."""
        return replace(self, terms=terms)

    def asking(self, update: Mapping[str, Any]) -> GenerationJob:
        """Return the job with keys of its workload changed."""
        return replace(self, asked=self.asked.model_copy(update=dict(update)))

    def at_load(self, load: float) -> GenerationJob:
        """Return the job at another rate."""
        return self.asking({"rate": load})

    def times(self, growth: float) -> GenerationJob:
        """Return the job at so many times its rate."""
        return self.at_load((self.asked.rate or 0.0) * growth)

    @property
    def needed(self) -> float:
        """Images a second with the headroom."""
        return (self.asked.rate or 0.0) * (1 + self.asked.headroom)

    @property
    def target(self) -> tuple[float, float | None] | None:
        """Seconds that an image may take, and at which share (none: on average)."""
        return target_of(self.asked)

    def columns(self, effort: Effort = UNLIMITED, depth: Depth = "each", held: Held = NOTHING_HELD) -> ReplicaWays:
        """Return every way to run a replica that fits, with the rate that it holds among as many as the load needs.

        In a fleet that shares nodes over time the load changes: then the rate is what a replica holds by itself.
        """
        changing = depth == "shared"
        key = (id(self.terms.market.candidates), self.terms.market.at_hand, tuple(sorted(held.items())), changing,
               self.asked.model_dump_json())
        if key not in self._known:
            self._known[key] = self._columns(held, changing_load=changing)
        return self._known[key]

    def _columns(self, held: Held, *, changing_load: bool) -> ReplicaWays:
        made, columns = dict[Key, CallWay](), list[ReplicaColumn]()
        tight, slow = list[CallWay](), list[CallWay]()
        looked = fit = 0
        at_hand = list(self.terms.market.at_hand)
        for done, at in enumerate(at_hand):
            say(partial(SoFar, self.terms.objective, done / len(at_hand), None, None))
            best = dict[tuple[str, int], ReplicaColumn]()
            for way, fitting in ways_on(self.asked, self.catalog, self.terms, at, held, self.confidence):
                looked += 1
                if not fitting:
                    tight.append(way)
                    continue
                fit += 1
                rate = alone(way, self.target) if changing_load else self._share(way)
                if rate is None:
                    slow.append(way)
                    continue
                column = column_of(way, rate)
                made[key_of(column)] = way
                same = column.format, column.gpus
                if same not in best or column.rate > best[same].rate:
                    best[same] = column
            columns += best.values()
        demand = Demand(self.needed, self.asked.day, self.asked.spare_replicas or self.asked.spare_nodes,
                        whole_nodes=self.asked.spare_nodes > 0, changing=changing(self.asked),
                        unit="images/s" if self.catalog.diffusion(self.asked.model).media == "image" else "clips/s")
        return ReplicaWays(replicas=tuple((0, column) for column in columns), demands=(demand,), made=made,
                           leanest=min(tight, key=self._lacking, default=None),
                           soonest=min(slow, key=lambda way: way.alone, default=None), looked=looked,
                           account=Search(layouts=looked, legal=looked, fit=fit, staged=len(columns),
                                          domains={"quantization": tuple(self.asked.quantization or ())}))

    def _share(self, way: CallWay) -> float | None:
        """Return the rate of each of the fewest replicas that hold the load; none where no number does."""
        count = fewest(way, self.needed, self.target)
        return None if count is None else self.needed / count * (1 + 1e-9)

    def _lacking(self, way: CallWay) -> float:
        return (sure_bytes(way, self.catalog.generation_law, self.confidence)
                - self.terms.market.candidates[way.candidate].gpu.usable_memory)

    @property
    def service(self) -> Service:
        """The requests as services have them, of one token each that a step makes."""
        return image_service(self.asked, self._way)

    def _way(self, column: ReplicaColumn) -> CallWay:
        """Return what a column of this question is, whatever was held when it was made."""
        mine = id(self.terms.market.candidates), self.asked.model_dump_json()
        known = [ways.made for key, ways in self._known.items() if (key[0], key[-1]) == mine]
        # columns may be those of a job that asks the same
        made = next((made for made in known if key_of(column) in made), None) or self.columns(depth="shared").made
        return made[key_of(column)]

    def assignments(self, columns: Columns, picks: Sequence[Picked], replaying: Replaying | None = None
                    ) -> list[Assignment]:
        """Return the replicas picked in full; with `replaying`, with percentiles of a replay beside those computed."""
        mine = [pick for pick in picks if isinstance(pick, Pick)]
        if not mine:
            return []
        found: Replayed | None = None
        service, candidates = self.service, self.terms.market.candidates
        if replaying is not None:
            given = None if replaying.trace is None else requests_of(service, replaying.trace)
            outcome, day = replay(self.catalog, service, candidates, mine, given, progress=replaying.progress)
            found = replayed(outcome, service, day)
        many = sum(pick.replicas for pick in mine)
        return [self._assignment(pick, rate, many, found)
                for pick, rate in zip(mine, loads(service, mine), strict=True)]

    def _assignment(self, pick: Pick, rate: float, many: int, found: Replayed | None) -> Assignment:
        candidate, way = self.terms.market.candidates[pick.column.candidate], self._way(pick.column)
        placed = ReplicaPlace(
            pick.replicas, pick.nodes, pick.offer, pick.usd_per_node_hour, pick.part,
            None if pick.always or len(set(pick.daily)) == 1 else pick.daily, pick.share,
            purchase=bought_of(pick.offer.estate, pick.together, pick.buys, 1.0)
            if pick.offer.estate is not None and pick.buys else None, idle=pick.idle,
            hourly=None if len(set(pick.hourly)) < 2 else pick.hourly)
        return generation_assignment(self.name, self.asked, way, candidate, self.catalog.generation_law,
                                     self.confidence, placed, Queue(way, many, rate), found)

    def tried(self, picks: Sequence[Pick], factor: float, given: Trace | None, least: float = 0.0) -> Tried:
        """Return what replays show of the picks at the rate times a factor; given: a trace to hold besides; least: the
        share up to which it is of no interest how much is held.

        Without a latency target no replay misses: what they make at most decides.
        """
        if self.target is None:
            service = replace(self.service, rate=self.needed * factor)
            asked = tuple(loads(service, picks))
            most = tuple(self._way(pick.column).rate * BUSIEST for pick in picks)
            return Tried(all(map(le, asked, most)), asked, tuple(map(min, asked, most)), 0)
        return tried(self.catalog, self.service, self.terms.market.candidates, picks, factor, given, least)

    def tried_day(self, picks: Sequence[Pick]) -> Tried:
        """Return what a replay of the whole day shows of its busiest hours."""
        return tried_day(self.catalog, self.service, self.terms.market.candidates, picks)

    def faults(self, columns: Columns, picks: Sequence[Picked]) -> list[str]:
        """Return what does not fit of what was picked, by its bytes added up again."""
        return [f"{self.name} does not fit" for made in self.assignments(columns, picks)
                if sum(made.memory.components.model_dump().values()) > made.memory.usable_bytes]

    def miss(self, columns: Columns, possible: Callable[[Change], bool]) -> Infeasible | None:
        """Return why nothing makes an image within the target, even idle; none where something does."""
        assert isinstance(columns, ReplicaWays)
        if columns.replicas:
            return None
        return self.lacking(columns.leanest, columns.soonest, possible)

    def lacking(self, lean: CallWay | None, soon: CallWay | None, possible: Callable[[Change], bool]) -> Infeasible:
        """Return why nothing does it: of what fits nowhere the leanest, of what is too slow the soonest."""
        candidates = self.terms.market.candidates
        said = None if lean is None else nearest(
            lean, candidates[lean.candidate], sure_bytes(lean, self.catalog.generation_law, self.confidence))
        return misses(self.name, self.asked, soon, said, possible,
                      None if soon is None else candidates[soon.candidate].node.name)

    def broken(self, columns: Columns, effort: Effort) -> list[str]:
        """Return that no GPU has the format of the denoiser, where that is so."""
        return [] if columns.account.legal else [
            f"no candidate multiplies in {', '.join(self.asked.quantization or ())}"]

    def short(self, columns: Columns) -> Short:
        """Return nothing more: what lacks memory is told by `miss`."""
        return Short("nothing holds it")

    def knobs(self, assignments: Sequence[Assignment]) -> Iterable[Knob]:
        """Yield what the latency target, headroom and spares are worth."""
        return knobs_of(self.name, self.asked, assignments)

    def processed(self, columns: Columns, picks: Sequence[Picked]) -> Processed:
        """Return the images of a month, and the GPUs at work on them."""
        mine = [pick for pick in picks if isinstance(pick, Pick)]
        day = self.asked.day or (1.0,)
        images = (self.asked.rate or 0.0) * sum(day) / len(day) * MONTH_DAYS * DAY
        gpus = float(sum(pick.replicas * pick.column.gpus for pick in mine))
        return Processed(0.0, 0.0, gpus, gpus, images=images)

    def decided(self, columns: Columns) -> Defaults:
        """Return nothing beside the defaults of the question."""
        return []


def generation_job(name: str, asked: Generation, catalog: Catalog, terms: Terms, confidence: float) -> GenerationJob:
    """Return a resolved service on its terms. Raises InputError without a rate."""
    if asked.rate is None:
        raise InputError(f"{asked.label}: neither rate nor samples is given: a plan needs the load, such as rate: 2 "
                         "images/s or samples: 1000; planner estimate says what one GPU makes")
    return GenerationJob(name, asked, catalog, terms, confidence)
