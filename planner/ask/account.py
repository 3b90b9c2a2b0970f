"""What every plan says beside its fleet: what decided it, what was looked at, and that it came to its end."""

from __future__ import annotations

from collections.abc import Sequence

from planner.answer.schema import Plan, Search
from planner.jobs.columns import joined
from planner.jobs.market import price_dates
from planner.jobs.solved import Solved
from planner.scenario.default import Default, Defaults


class Interrupted(Exception):
    """The search was interrupted (Ctrl-C); `plan` is the best so far, with its gap."""

    def __init__(self, plan: Plan) -> None:
        super().__init__("interrupted")
        self.plan = plan


def finished(plan: Plan, solved: Solved) -> Plan:
    """Return a plan whose search came to its end. Raises Interrupted with the plan where Ctrl-C ended it."""
    if solved.interrupted:
        raise Interrupted(plan)
    return plan


def decided(solved: Solved) -> Defaults:
    """Return what decided beside the defaults of the question."""
    question = solved.question
    return [price_dates(offer.as_of for offer in question.terms.market.offers),
            *(one for job, columns in zip(question.jobs, solved.columns, strict=True)
              for one in job.decided(columns))]


def with_decided(defaults: Sequence[Default], solved: Solved) -> Defaults:
    """Return the defaults of a question with what decided beside them, in place of those of the same name."""
    return list({one.name: one for one in (*defaults, *decided(solved))}.values())


def search_of(solved: Solved, seconds: float) -> Search:
    """Return the account of all jobs' searches together."""
    found = joined([columns.account for columns in solved.columns], seconds)
    dropped = len(solved.question.terms.market.dropped)
    return found.model_copy(update={"removed": found.removed | ({"no_offer": dropped} if dropped else {})})
