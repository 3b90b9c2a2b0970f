"""A question that is answered in a twentieth of a second, and a stand-in for the search that is quicker still."""

import json

import pytest

from planner.answer.schema import Infeasible, Objective, Plan
from planner.ask.account import provenance_of
from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.scenario.load import paths_of
from planner.sweeping.local import this_process
from planner.sweeping.task import SweepTerms, tasks
from planner.sweeping.variants import varied
from tests.cli.conftest import planner  # noqa: F401 - the fixture that runs the command

QUESTION = """\
workload: {model: llama-3.1-8b, tokens: 1 G, sequence_length: 2048, global_batch: 64 sequences, stack: megatron-core}
hardware: {candidates: [dgx-h100]}
sourcing: {own: {dgx-h100: 1}}
limits: {gpus: 8}
"""
SIX = ("workload.tokens=1G,2G,3G", "limits.deadline=3d,1h")
"""Six variants, of which those with the second deadline are infeasible."""


@pytest.fixture(scope="session")
def question(tmp_path_factory):
    path = tmp_path_factory.mktemp("question") / "question.yaml"
    path.write_text(QUESTION)
    return path


@pytest.fixture(scope="session")
def rented(tmp_path_factory):
    """A question that rents from one provider only."""
    path = tmp_path_factory.mktemp("question") / "rented.yaml"
    path.write_text(QUESTION.replace("{own: {dgx-h100: 1}}", "{own: {dgx-h100: 1}, rent: {providers: [lambda]}}"))
    return path


@pytest.fixture(scope="session")
def six(question):
    """Return six tasks, and their terms."""
    catalog = Catalog()
    return tasks(str(question), varied(SIX, paths_of(None, catalog)), catalog), SweepTerms((), catalog.digest)


@pytest.fixture(scope="session")
def expected(six):
    """Return the six plans, answered one after the other in this process."""
    asked, terms = six
    with this_process(terms, Catalog()) as answers:
        return [timeless(outcome.plan) for outcome in answers(asked)]


class Search:
    """Takes the place of make_plan: remembers what it was asked, and says no; what `fails` has for it, it raises."""

    def __init__(self):
        self.asked, self.fails = [], {}

    def __call__(self, scenario, catalog, *, defaults, time_limit):
        self.asked.append(str(scenario.limits.deadline))
        if self.asked[-1] in self.fails:
            raise self.fails[self.asked[-1]]
        return Plan(status="undecided" if time_limit else "infeasible", objective=Objective(name="cost_usd"),
                    infeasible=None if time_limit else Infeasible(because=("a test",)),
                    provenance=provenance_of(scenario, catalog, defaults))


@pytest.fixture
def search(monkeypatch):
    stand_in = Search()
    monkeypatch.setattr("planner.sweeping.answering.make_plan", stand_in)
    return stand_in


def timeless(line):
    """Return a line, or the plan of an outcome, without what differs each time."""
    data = json.loads(line) if isinstance(line, str) else {"plan": line}
    if data["plan"] is not None:
        data["plan"]["search"]["wall_seconds"] = 0
    return data


def no_offer():
    return InputError("no candidate has a usable offer")
