"""What every plan says beside its fleet: what it rests on, what decided and was looked at, that it came to its end."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import metadata

from planner.answer.schema import Measure, Plan, Provenance, Search
from planner.catalog.load import Catalog
from planner.jobs.columns import joined
from planner.jobs.market import price_dates
from planner.jobs.solved import Solved
from planner.process.version import __version__
from planner.scenario.default import Default, Defaults
from planner.scenario.portfolio import AnyQuestion

UNREPLAYED = "interrupted before its requests were replayed: latencies are as computed"


def provenance_of(scenario: AnyQuestion, catalog: Catalog, defaults: Sequence[Default], *,
                  simple: bool = False, pareto: tuple[Measure, ...] | None = None) -> Provenance:
    """Return what the answer rests on: the resolved question, defaults, catalog and versions.

    simple: the plan is another than the optimum, the simplest of those tied with it.
    """
    return Provenance(scenario=scenario.model_dump(mode="json", exclude_none=True, by_alias=True),
                      defaults=tuple(defaults), catalog_digest=catalog.digest, versions=_versions(),
                      prefer="simple" if simple else None, pareto=pareto)


def _versions() -> dict[str, str]:
    return {"planner": __version__, **{name: _installed(name) for name in ("ortools", "numpy", "networkx")}}


@cache
def _installed(name: str) -> str:
    """Return the version of a package, whose files do not change under a process that runs."""
    return metadata.version(name)


class Interrupted(Exception):
    """The search was interrupted (Ctrl-C); `plan` is the best so far, with its gap."""

    def __init__(self, plan: Plan) -> None:
        super().__init__("interrupted")
        self.plan = plan


def finished(plan: Plan, solved: Solved, *, interrupted: bool = False) -> Plan:
    """Return a plan whose search came to its end. Raises Interrupted with the plan where Ctrl-C ended it, or what came
    after it was `interrupted`.
    """
    if interrupted or solved.interrupted:
        raise Interrupted(plan)
    return plan


def decided(solved: Solved) -> Defaults:
    """Return what decided beside the defaults of the question."""
    question = solved.question
    return [price_dates(offer.as_of for offer in question.terms.market.offers),
            *(default for job, columns in zip(question.jobs, solved.columns, strict=True)
              for default in job.decided(columns))]


def with_decided(defaults: Sequence[Default], solved: Solved) -> Defaults:
    """Return the defaults of a question with what decided beside them, in place of those of the same name."""
    return list({default.name: default for default in (*defaults, *decided(solved))}.values())


def search_of(solved: Solved, seconds: float) -> Search:
    """Return the account of all jobs' searches together."""
    search = joined([columns.account for columns in solved.columns], seconds)
    dropped = len(solved.question.terms.market.dropped)
    return search.model_copy(update={"removed": search.removed | ({"no_offer": dropped} if dropped else {})})
