"""The public functions. Each returns what the command of its name prints with `--json`, as a typed, frozen object."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, cast, get_args

from planner.answer.assignment import Assignment
from planner.answer.comparison import Comparison
from planner.answer.explanation import Explanation
from planner.answer.schema import Plan
from planner.answer.validation import Validation
from planner.api import arguments
from planner.api.arguments import Asked, FilePath
from planner.ask.affordable import afforded
from planner.ask.estimate import Estimating, Measured, estimating
from planner.ask.plan import make_plan
from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.jobs.solved import effort_of
from planner.launch.targeted import told_as_asked
from planner.scenario.adding import with_jobs
from planner.scenario.configs.read import Config
from planner.scenario.flags import FLAGS, NAMES
from planner.scenario.hardware_alone import hardware_alone, load_hardware
from planner.scenario.keywords import by_path
from planner.scenario.load import load_question, paths_of, shipped
from planner.scenario.portfolio import AnyQuestion, Portfolio
from planner.sweeping.line import Sweep

TYPE_CHECKING = False

if TYPE_CHECKING:
    from planner.ask.compare import Compared
    from planner.ask.rent_or_buy import Havings
    from planner.scenario.default import Defaults


def plan(scenario: Asked | None = None, *, catalogs: FilePath | Iterable[FilePath] = (),
         time_limit: float | str | None = None, prefer: str | None = None, pareto: str | Iterable[str] | None = None,
         workers: int = 1, replay: FilePath | None = None, from_: FilePath | Config | None = None,
         add: FilePath | Iterable[FilePath] = (), layout: Mapping[str, object] | str | None = None,
         **values: object) -> Plan:
    """Return the cheapest (or fastest, or smallest) plan for a question, with its proof.

    `scenario` is a file, the name of a shipped one, or what a file holds as a mapping. `values` are the flags of
    `planner plan`, underscored (`model="llama-3.1-70b", tokens=15e12, deadline="60 d"`), and override it;
    quantities carry their units. `time_limit` is in seconds or has a unit; `prefer="simple"` takes the simplest of
    the tied layouts; `pareto="cost,days"` gives the exact frontier of trade-offs as alternatives; `workers`
    processes share the search out; a service's plan is replayed on the trace `replay`; what `from_`, the config of
    a framework or an engine, says of the work holds where nothing else is said; the jobs of the files `add` are
    added to a portfolio; the axes of `layout` (`{"tp": 8}` or `"tp=8"`) are held. The plan's `status` says whether
    it is proven, infeasible or undecided. Raises PlannerError where the input is wrong.
    """
    scenario = arguments.with_jobs(scenario, values)
    catalog, limit = arguments.catalog(catalogs), arguments.seconds("time_limit", time_limit)
    simple = arguments.one_of("prefer", prefer, ["simple"]) is not None
    measures, crew = arguments.words("pareto", pareto, "'cost,days'"), arguments.workers(workers)
    trace = None if replay is None else arguments.path("replay", replay)
    from_ = from_ or arguments.named_config(values)
    overrides, names = by_path(values, "argument of planner.plan", catalog)
    labels, config = _labels(names), arguments.config(from_)
    if config is not None:
        labels |= config.labels(overrides)
        overrides = config.alone(scenario).planned(overrides, catalog)
    asked, more = arguments.reference(scenario), arguments.paths("add", add)
    bought = afforded({} if asked or config or more else overrides, catalog)
    question, defaults = load_question(asked, overrides | dict(bought.values), catalog, labels=labels)
    defaults = [*bought.defaults, *defaults]
    before = question if more and isinstance(question, Portfolio) else None
    if more:
        question, defaults = load_question(with_jobs(asked, more, catalog), overrides, catalog, labels=labels)
    found = make_plan(question, catalog, defaults=defaults, time_limit=limit, simple=simple, pareto=measures,
                      workers=crew, replay=trace, before=before, layout=arguments.axes(layout))
    return told_as_asked(found, question, catalog)


def estimate(scenario: Asked | None = None, node: str | None = None,
             layout: Mapping[str, object] | str | None = None, *, nodes: int | None = None,
             from_: FilePath | None = None, largest: str | None = None,
             catalogs: FilePath | Iterable[FilePath] = (), **values: object) -> Assignment:
    """Return whether a job or a service fits on a node type, how fast it is, and where bytes and seconds go.

    `scenario` is as for `plan`, or the name of a model; `values` are the same keywords (`gpus` are GPUs in all,
    `sequence_length` is in tokens, `global_batch` in sequences, `confidence` that of the memory verdict), of which
    those that have no effect on an estimate are refused by name. `node` is a node type; all GPUs of it, or of
    `nodes` such, are used where `gpus` is not given. `layout` holds axis values as in `planner estimate --layout`
    (`{"tp": 8, "pp": 4}`); left out it is the best, and what a part of one leaves open is the fastest. `from_` is the
    config of a framework or an engine, or the line that starts one, whose values and layout hold where none are given.
    `largest` is what the largest that fits is looked for of, and estimated: as `planner estimate --max`; where none
    fits, the next that does not. Its kind follows the values: with `input`, `output`, `concurrency`, ... it is of a
    service. Raises PlannerError.
    """
    asking = estimate_asked(scenario, node, layout, nodes=nodes, from_=from_, largest=largest, catalogs=catalogs,
                            **values)
    if largest is None:
        return asking()
    found = asking.largest(cast(Measured, largest))
    made = found.estimate or found.misses
    if made is None:
        raise InputError(f"largest: no {largest} was found, and none that just does not fit")
    return made


def estimate_asked(scenario: Asked | None = None, node: str | None = None,
                   layout: Mapping[str, object] | str | None = None, *, nodes: int | None = None,
                   from_: FilePath | Config | None = None, largest: str | None = None,
                   catalogs: FilePath | Iterable[FilePath] | Catalog = (), **values: object) -> Estimating:
    """Return what `estimate` answers when it is called, with what else may be asked of it. Raises PlannerError."""
    facts, from_ = arguments.catalog(catalogs), from_ or arguments.named_config(values)
    axes = arguments.with_axes(layout, values)
    overrides, names = by_path(values, "argument of planner.estimate", facts)
    asked = arguments.reference(scenario)
    if isinstance(asked, str) and not _names_a_scenario(asked):
        if "workload.model" in overrides:
            raise InputError(f"scenario: no file and no shipped scenario is named {asked!r}, and model is given too")
        asked, overrides = None, {"workload.model": asked, **overrides}
    named = None if node is None else arguments.text("node", node, "'dgx-h100'")
    measured = arguments.one_of("largest", largest, get_args(Measured))
    return estimating(asked, overrides, facts, node=named,
                      layout=axes, labels=_labels(names), nodes=arguments.nodes(nodes),
                      config=arguments.config(from_), largest=cast(Measured | None, measured))


def compare(scenario: Asked | None = None, *, catalogs: FilePath | Iterable[FilePath] = (),
            time_limit: float | str | None = None, workers: int = 1, **values: object) -> Comparison:
    """Return every candidate with every offer, each at its own best plan; those without one say why.

    `scenario`, `values`, `time_limit` and `workers` are as for `plan`. Several models (`model="qwen3-8b,llama-3.1-8b"`)
    are compared on every kind of GPU, hardware without work (`on="64xh100", years=3`) by what it costs to rent and to
    buy. Raises PlannerError.
    """
    from planner.ask.compare import comparison_of

    ways = ways_asked(scenario, values, catalogs=catalogs, always=True)
    return ways.comparison if ways is not None else comparison_of(
        compare_asked(scenario, catalogs=catalogs, time_limit=time_limit, workers=workers, **values)[0])


def ways_asked(scenario: object, values: Mapping[str, object], *, catalogs: FilePath | Iterable[FilePath] | Catalog,
               always: bool) -> Havings | None:
    """Return the ways to have hardware that is asked about without work; none where work is asked about.

    always: also where neither years nor buying are named. Raises PlannerError.
    """
    from planner.ask.rent_or_buy import rent_or_buy

    catalog = arguments.catalog(catalogs)
    overrides, names = by_path(values, "argument of planner.compare", catalog)
    named = hardware_alone(arguments.reference(scenario), overrides, catalog, always=always)
    return None if named is None else rent_or_buy(load_hardware(named, catalog, _labels(names))[0], catalog)


def compare_asked(scenario: Asked | None = None, *, catalogs: FilePath | Iterable[FilePath] | Catalog = (),
                  time_limit: float | str | None = None, workers: int = 1,
                  **values: object) -> tuple[list[Compared], Defaults]:
    """Return the rows of `compare` with what they were computed from, and what nobody chose. Raises PlannerError."""
    from planner.ask.compare import compare as compared
    from planner.ask.compare import compare_models, several_models
    from planner.jobs.holding import asks_what_holds
    from planner.scenario.pool import sizes_apart

    catalog = arguments.catalog(catalogs)
    effort = effort_of(arguments.seconds("time_limit", time_limit), arguments.workers(workers))
    scenario = arguments.with_jobs(scenario, values)
    overrides, names = by_path(values, "argument of planner.compare", catalog)
    asked = arguments.reference(scenario)
    varied = {model: {"workload.model": model} for model in several_models(overrides.get("workload.model"))} or {
        name: {"hardware.candidates": name} for name in sizes_apart(overrides.get("hardware.candidates"), catalog)}
    loaded = [load_question(asked, {**overrides, **changed}, catalog, labels=_labels(names))
              for changed in [*varied.values()] or [{}]]
    questions, defaults = [question for question, _ in loaded], loaded[0][1]
    if not varied:
        return compared(questions[0], catalog, effort, defaults=defaults), defaults
    if asks_what_holds(questions[0]):
        raise InputError("model: several are compared by what they cost: give tokens, samples or a rate")
    return compare_models(dict(zip(varied, questions, strict=True)), catalog, effort, defaults), defaults


def explain(scenario: Asked | None = None, *, why_not: str | Mapping[str, object] | Iterable[object] = (),
            catalogs: FilePath | Iterable[FilePath] = (), time_limit: float | str | None = None, workers: int = 1,
            **values: object) -> Explanation:
    """Return which limits bind and what one unit more is worth, why not another choice, or why there is no plan.

    `why_not` is a choice that the plan does not make (`"tp=4,pp=2"` or `{"gpu": "a100"}`), or several; `scenario`,
    `values`, `time_limit` and `workers` are as for `plan`. Raises PlannerError.
    """
    from planner.ask.explain.explain import explain as explained

    catalog, choices = arguments.catalog(catalogs), arguments.choices(why_not)
    effort = effort_of(arguments.seconds("time_limit", time_limit), arguments.workers(workers))
    overrides, names = by_path(values, "argument of planner.explain", catalog)
    asked = arguments.reference(scenario)

    def ask(replaced: Mapping[str, str]) -> AnyQuestion:
        labels = _labels(names) | {path: f"why_not ({path})" for path in replaced}
        return load_question(asked, overrides | dict(replaced), catalog, labels=labels)[0]

    return explained(ask, catalog, choices, effort)


def check(verb: str, scenario: Asked | None, values: Mapping[str, Any], catalog: Catalog) -> None:
    """Raise PlannerError for what is wrong with a question, as far as that is known before anything is searched."""
    if verb == "estimate":
        estimate_asked(scenario, catalogs=catalog, **values)
        return
    arguments.seconds("time_limit", values.get("time_limit"))
    overrides, names = by_path({name: value for name, value in values.items() if name in NAMES}, "", catalog)
    load_question(arguments.reference(scenario), overrides, catalog, labels=_labels(names))


def sweep(scenario: Asked | None = None, *, vary: Mapping[str, object] | str | Iterable[str] = (),
          catalogs: FilePath | Iterable[FilePath] = (), time_limit: float | str | None = None, workers: int = 1,
          **values: object) -> Sweep:
    """Return the plan of every combination of the values that `vary` names: what if.

    `vary` maps scenario paths or keywords to what they take in turn (`{"deadline": ["30 d", "60 d"]}`), or is text as
    for `--vary`; a value of a list may be a list. `time_limit` holds for each variant, and `workers` processes answer
    them; `scenario` and `values` are as for `plan`. A variant that cannot be answered has its `error`. Raises
    PlannerError where the question is wrong.
    """
    from planner.sweeping.run import collected
    from planner.sweeping.variants import varied

    catalog = arguments.catalog(catalogs)
    arguments.refuse_renamed(values)
    overrides, names = by_path(values, "argument of planner.sweep", catalog)
    asked = arguments.reference(scenario)
    axes = varied(arguments.varied(vary, NAMES), paths_of(asked, catalog))
    return collected(asked, axes, catalog, overrides, _labels(names),
                     arguments.seconds("time_limit", time_limit), arguments.workers(workers))


def validate(evidence: FilePath, *, catalogs: FilePath | Iterable[FilePath] = ()) -> Validation:
    """Return predicted against measured for an evidence CSV. Raises PlannerError."""
    from planner.ask.validate import validate_file

    return validate_file(arguments.path("evidence", evidence), arguments.catalog(catalogs))


def _labels(names: Mapping[str, str]) -> dict[str, str]:
    """Return what messages call scenario values: the name that was used, else that of the keyword."""
    return {path: name for name, path in FLAGS.items()} | dict(names)


def _names_a_scenario(asked: str) -> bool:
    """Say whether text is a file or a shipped scenario, and so no model."""
    return asked.endswith((".yaml", ".yml")) or os.path.isfile(asked) or asked.lower() in shipped()
