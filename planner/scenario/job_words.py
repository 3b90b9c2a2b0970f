"""Portfolios as people write them: what they call the list of jobs, the keys of a job, and the time that is planned."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date
from typing import Any

from planner.errors import InputError
from planner.scenario.dates import stretch
from planner.scenario.moment import end_of, from_to, moment_of, written
from planner.scenario.serving import LOADS
from planner.units import DAY

JOB = frozenset({"name", "workload", "release", "deadline", "late", "worth", "after", "may_pause", "count", "every",
                 "from", "growth"})
"""Keys of a job that are its own."""
MANY = ("jobs", "portfolio", "tasks", "runs", "projects")
"""What the list of jobs is called."""
JOB_WORDS: Mapping[str, str] = {said: key for key, names in {
    "name": "id title job label", "after": "depends_on depends requires needs waits_for predecessors",
    "release": "start begin start_date starts earliest earliest_start not_before ready ready_at available_from",
    "deadline": "end end_date ends due due_date finish_by latest latest_end must_end_by until",
    "count": "copies times repeat repeats instances quantity how_many",
    "every": "frequency interval recurring repeat_every",
    "late": "late_penalty penalty penalty_per_day lateness_cost late_cost",
    "may_pause": "can_pause pausable preemptible interruptible pause",
    "worth": "value_usd reject_cost value profit revenue"
    }.items() for said in names.split()}
"""What people call the keys of a job, with the planner's."""
INSTEAD: Mapping[str, str] = {
    **dict.fromkeys(("priority", "prio", "importance", "weight", "class"),
                    "every job is done by its deadline, so that none goes before another; worth: 20 kUSD says what "
                    "leaving it out forgoes, late: 500 USD/d what a day after its deadline costs"),
    **dict.fromkeys(("window", "time_window", "hours", "schedule", "cron", "run_at", "allowed_hours"),
                    "a job runs at any hour of the day; release and deadline say from when and until when, every: 1 d "
                    "that it is released each day, day: 8h-20h when a service is asked"),
    **dict.fromkeys(("on", "gpus", "gpu", "nodes", "node", "num_gpus", "max_gpus", "max_nodes", "hardware"),
                    "a job of a portfolio runs on what is best for it in the pool: on, own and max_nodes stand at the "
                    "top"),
    **dict.fromkeys(("file", "path", "include", "import", "scenario", "from_file"),
                    "jobs stand in the portfolio's own file; one in a file of its own joins it on the command line: "
                    "planner plan PORTFOLIO.yaml --add JOB.yaml"),
    **dict.fromkeys(("duration", "runtime", "gpu_hours", "gpu-hours", "walltime", "wall_time"),
                    "how long a job takes follows from its model and its tokens; jobs of known GPUs and hours are a "
                    "log: planner plan --jobs LOG.csv --on dgx-h100"),
    **dict.fromkeys(("rejectable", "optional", "may_reject", "can_reject", "droppable"),
                    "worth: 20 kUSD says that a job may be left out, and what that forgoes"),
    **dict.fromkeys(("budget", "max_cost"), "a budget is of all jobs together: budget at the top")}
"""Keys of a job that it has not, with what to write."""
OF_MANY: Mapping[str, str] = {
    **dict.fromkeys(("delivery", "delivery_time", "lead_time"), "sourcing.buy.delivery"),
    **dict.fromkeys(("quota", "quotas"), "sourcing.rent.quota"), "site_power": "limits.site_power"}
"""Keys at the top of a portfolio that stand in a block."""
_PERIOD = ("step", "granularity", "resolution", "interval", "time_step", "slot")
_LENGTHS = ("days", "weeks", "months", "quarters", "years")
"""Of a horizon, as keys: weeks: 26."""
MONTHS_OF_QUARTER = 3
_START, _END = ("start", "begin", "start_date"), ("end", "finish", "end_date")


def with_jobs_listed(data: dict[Any, Any]) -> dict[Any, Any]:
    """Return a file with its list of jobs under `jobs`; of jobs under their names a list with these."""
    whole = data.get("portfolio")
    if len(data) == 1 and isinstance(whole, dict) and "jobs" in whole:
        data = whole
    key = next((key for key in MANY if isinstance(data.get(key), list | dict)), None)
    if key is None or (key != "jobs" and "jobs" in data):
        return data
    jobs = data[key]
    if isinstance(jobs, dict):
        if not jobs or not all(isinstance(job, dict) for job in jobs.values()):
            return data
        jobs = [{"name": str(name), **job} for name, job in jobs.items()]
    if not all(isinstance(job, dict) for job in jobs):
        return data
    jobs = _with_names(jobs)
    return {("jobs" if name == key else name): (jobs if name == key else value) for name, value in data.items()}


def _with_names(jobs: list[dict[Any, Any]]) -> list[dict[Any, Any]]:
    """Return jobs of which those without a name have that of their model, and their place where it is not alone."""
    named = [name for name, key in JOB_WORDS.items() if key == "name"]
    models = [str(job.get("model", "job")) for job in jobs]
    return [job if any(key in job for key in ("name", *named)) or "workload" in job else {
        "name": models[at] if models.count(models[at]) == 1 else f"{models[at]}-{at + 1}", **job}
        for at, job in enumerate(jobs)]


def with_horizon(data: dict[Any, Any]) -> dict[Any, Any]:
    """Return a portfolio with its first and last day, at the top or as a horizon, as start and length.

    Raises InputError for dates that are none.
    """
    horizon = data.get("horizon", {})
    if not isinstance(horizon, dict):
        return data
    if "period" not in horizon and (period := next((key for key in _PERIOD if key in horizon), None)) is not None:
        horizon = {("period" if key == period else key): value for key, value in horizon.items()}
        data = {**data, "horizon": horizon}
    if "length" not in horizon and (unit := next((key for key in _LENGTHS if key in horizon), None)) is not None:
        horizon = {("length" if key == unit else key): _length(value, unit) if key == unit else value
                   for key, value in horizon.items()}
        data = {**data, "horizon": horizon}
    stated = {**{key: data[key] for key in (*_START, *_END) if key in data}, **horizon}
    first, last = (next((key for key in keys if key in stated), None) for keys in (_START, _END))
    if first is None and last is None:
        return data
    rest = {key: value for key, value in data.items() if key not in (*_START, *_END)}
    told = {key: value for key, value in horizon.items() if key not in (*_START, *_END)}
    try:
        if first is not None:
            told["start"] = stated[first]
        if last is not None and "length" not in told:
            began = moment_of(stated[first]) if first is not None else None
            if began is None:
                raise ValueError(f"{last} needs a start")
            told["length"] = f"{(end_of(stated[last]) - began).total_seconds() / DAY:g} d"
    except ValueError as error:
        raise InputError(f"horizon: {error}") from None
    return {**rest, "horizon": told} if "length" in told else {**rest, "horizon": {"length": "52 weeks", **told}}


def _length(count: object, unit: str) -> str:
    quarters = unit == "quarters" and isinstance(count, int)
    return f"{int(str(count)) * MONTHS_OF_QUARTER} months" if quarters else f"{count} {unit}"


def after_dates(jobs: list[Any]) -> list[Any]:
    """Return jobs of which those that come after a date, and after no job of that name, are released then; of several
    jobs that are named with commas between, a list.
    """
    names = {job.get("name") for job in jobs if isinstance(job, dict)}
    return [_released(_listed(job, names), names) if isinstance(job, dict) else job for job in jobs]


def _listed(job: dict[Any, Any], names: Collection[object]) -> dict[Any, Any]:
    said = job.get("after")
    parts = [part.strip() for part in said.split(",")] if isinstance(said, str) and said not in names else []
    return {**job, "after": parts} if len(parts) > 1 and set(parts) <= set(names) else job


def _released(job: dict[Any, Any], names: Collection[object]) -> dict[Any, Any]:
    said = job.get("after")
    if not isinstance(said, str) or said in names or "release" in job:
        return job
    named = stretch(said, date.min)
    if named is None:
        return job
    whole = (named[1] - named[0]).days > 1
    return {("release" if key == "after" else key): f"end of {said}" if key == "after" and whole else value
            for key, value in job.items()}


def in_a_stretch(said: str | int) -> dict[str, object]:
    """Return a horizon of one value: a year, a quarter or a month by name, or two dates, else its length."""
    if days := from_to(said):
        return dict(zip((_START[0], _END[0]), days, strict=True))
    try:
        start, end = moment_of(str(said)), end_of(str(said))
    except ValueError:
        return {"length": said}
    return {"start": written(start), "length": f"{(end - start).total_seconds() / DAY:g} d"}


def in_words_of_jobs(job: dict[Any, Any], at: int) -> dict[Any, Any]:
    """Return a job with its keys under the planner's names. Raises InputError for keys that it has not, all at once."""
    work = job.get("workload")
    serves = isinstance(work, dict) and any(load in work for load in LOADS if load != "documents")
    wrong = {key: INSTEAD[key] for key in job if key in INSTEAD}
    if wrong:
        raise InputError("; ".join(f"jobs.{at}.{key}: {why}" for key, why in wrong.items()))
    told: dict[Any, Any] = {}
    for key, value in job.items():
        name = JOB_WORDS.get(str(key).replace("-", "_"), key)
        name = "from" if name == "release" and serves and key != "release" else name
        if serves and name == "deadline" and key != "deadline":
            raise InputError(f"jobs.{at}.{key}: a service runs until the end of the horizon")
        if name in told:
            raise InputError(f"jobs.{at}: {key} and {name} mean the same: give one of them")
        told[name] = value
    return told
