"""The pages: a question as a form, a file and an address, and its answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from planner.errors import InputError, PlannerError, UnknownName
from planner.process.version import __version__
from planner.web.answering import Answered, more, open_catalog, with_config
from planner.web.files import KINDS, as_file
from planner.web.forms import FORMS, called, form_of, inputs, inputs_of_a_portfolio, names
from planner.web.interface import body_of, desk_of, ended, response
from planner.web.jobs import PLANNED, changed, job_inputs
from planner.web.pool import Ended, Queued
from planner.web.question import FILE, PASTED, SCENARIO, TEXT, Verb, portfolios, question_of, shipped_names, typed
from planner.web.reading import read_into_fields, wrong_with
from planner.web.refusing import Refusal, refusal
from planner.web.shown import templates
from planner.web.uploads import by_own_names
from planner.web.wording import (
    address,
    as_command,
    as_python,
    as_yaml,
)
from planner.yaml_io import parse
from planner.yaml_io.rewriting import rewritten

PAGES = {"/": ("Does it fit", "estimate"), "/plan": ("Plan", "plan"), "/compare": ("Compare", "compare"),
         "/explain": ("Explain", "explain"), "/portfolio": ("Portfolio", "plan")}
"""Address -> its title, and the verb that it asks."""
HINTS = {
    "/plan": (("The cheapest way to serve Llama 3.3 70B to 300 users, the first token within 1 s",
               "model=llama-3.3-70b&users=300&ttft=1+s"),
              ("LoRA of Llama 3.1 8B on 50,000 samples", "model=llama-3.1-8b&method=lora&samples=50k"),
              ("The fewest GPUs of every kind that hold Qwen2.5 7B, for use and for tuning", "model=qwen2.5-7b")),
    "/compare": (("LoRA of Llama 3.1 8B on 50,000 samples, on H100, A100 and L40S",
                  "model=llama-3.1-8b&method=lora&samples=50k&on=h100,a100,l40s"),
                 ("Rent or buy 8 H100 for three years", "on=8xh100&years=3")),
    "/explain": (("What a deadline of three days costs, and the most GPUs",
                  "model=llama-3.1-8b&tokens=10+G&on=h100&deadline=3+d&max_gpus=64"),
                 ("Why not on A100", "model=llama-3.1-8b&method=lora&samples=50k&on=h100,a100&why_not=gpu%3Da100"))}
"""Page -> questions to begin with, and their addresses."""
BESIDE = ("levers", "longest", "runs")
"""What is told beside an estimate."""
LAID = ("kind", "left", "right", "job")
"""Fields of an address that are of the page, not of the question."""


def routes() -> list[Route | Mount]:
    """Return the routes of the pages."""
    return [*(Route(path, page) for path in PAGES), Route("/two", two), Route("/api", api),
            Route("/part/estimate", part), Route("/part/{what}", beside),
            Route("/words/{verb}", words, methods=["GET", "POST"]), Route("/fields", fields, methods=["POST"]),
            Route("/jobs", jobs, methods=["POST"]), Route("/check", check, methods=["POST"]),
            Route("/download/{verb}.{kind}", download), Route("/static/page.css", style),
            Mount("/static", StaticFiles(packages=[("planner.web", "static")]))]


def asked(request: Request, verb: str) -> Verb:
    """Return the question of an address. Raises InputError."""
    return _asked(request.query_params, verb)


def _asked(values: Mapping[str, str], verb: str) -> Verb:
    return question_of(verb, typed({name: value for name, value in values.items() if name not in LAID}), paged=True)


async def page(request: Request) -> Response:
    """Show a question, and its answer where that is quick or there already."""
    path = request.url.path
    title, verb = PAGES[path]
    query = dict(request.query_params)
    kind = query.pop("kind", "")
    if kind not in FORMS:
        kind = form_of(query, open_catalog(desk_of(request).folders))
    if not query and verb == "estimate":
        query = dict(FORMS[kind].start)
    try:
        question = question_of(verb, typed(query), paged=True)
    except PlannerError as error:
        return await _page(request, title, verb, kind, query, problem=refusal(error))
    answer, problem = "", None
    if verb == "estimate":
        made = await ended(desk_of(request).ask(question), request)
        answer, problem = (made.page, None) if isinstance(made, Answered) else ("", made)
    elif query and (found := desk_of(request).kept.get(question.key(desk_of(request).digest))):
        answer = found.page
    return await _page(request, title, verb, kind, query, question, answer, problem)


async def _page(request: Request, title: str, verb: str, kind: str, query: Mapping[str, str],
                question: Verb | None = None, answer: str = "", problem: Ended | None = None) -> Response:
    portfolio = title == "Portfolio"
    # jobs stand there from the first: what comes later would move what is below
    listed = await _listed(request, query) if portfolio and not problem else {}
    shown, log = inputs_of_a_portfolio(query) if portfolio else (inputs(verb, query), [])
    said = dict.fromkeys(("yaml", "command", "python"), "")
    if question:
        said = await run_in_threadpool(_said, question, request)  # a long file holds nobody else up
    return _html("ask.html.j2", request, title=title, verb=verb, kind="" if portfolio else kind,
                 fields=shown, log=log, job=job_inputs() if portfolio else (), planned=PLANNED, listed=listed,
                 values=query, forms=FORMS, answer=Markup(answer),
                 problem=problem.data()["error"] if isinstance(problem, Refusal) else None, said=said,
                 begin=bool(query) and not answer and not problem and verb != "estimate", portfolio=portfolio,
                 downloads=KINDS[verb],
                 hints=[(said, f"scenario={name}") for name, said in portfolios().items()] if portfolio else HINTS.get(
                     request.url.path, ()),
                 scenarios=[*portfolios()] if portfolio else shipped_names(),
                 names=names(open_catalog(desk_of(request).folders)), query=address(question) if question else "")


async def _listed(request: Request, query: Mapping[str, str]) -> dict[str, Any]:
    """Return the jobs of a portfolio's address as the form has them, and the time that is planned."""
    desk = desk_of(request)
    made = await ended(desk.make(Queued(partial(changed, dict(query), desk.folders), "")), request)
    return dict(json.loads(made.text)) if isinstance(made, Answered) else {}


def _html(name: str, request: Request, **shown: Any) -> HTMLResponse:  # noqa: ANN401 - what a template shows
    return HTMLResponse(templates().get_template(name).render(
        pages={path: title for path, (title, _) in PAGES.items()}, here=request.url.path, version=__version__, **shown))


async def part(request: Request) -> Response:
    """Return the answer to an estimate as a part of a page."""
    try:
        return _part(await ended(desk_of(request).ask(asked(request, "estimate")), request))
    except PlannerError as error:
        return _part(refusal(error))


def _part(made: Ended) -> Response:
    """Return a part of a page, or as JSON why there is none: to a page that is an answer too, and no failure."""
    return HTMLResponse(made.page) if isinstance(made, Answered) else JSONResponse(
        made.data() if isinstance(made, Refusal) else {})


async def beside(request: Request) -> Response:
    """Return what is told beside an estimate after it, or only where it is looked at."""
    desk, what, question = desk_of(request), request.path_params["what"], asked(request, "estimate")
    if what not in BESIDE:
        raise UnknownName("part of an estimate", what, BESIDE)
    made = await ended(desk.ask(question), request)
    if isinstance(made, Answered):
        made = await ended(desk.make(Queued(partial(more, what, question, made.text, desk.folders), "")), request)
    return _part(made)


def _said(question: Verb, request: Request, written: str = "") -> dict[str, str]:
    """Return a question as a file, with the comments of the one that was written, as a command and as Python."""
    folders, pasted = desk_of(request).folders, PASTED
    try:
        text = question.text if question.text and not question.values else as_yaml(question, open_catalog(folders))
        pasted = with_config(folders, question.config)[1] if question.config else pasted
        if written.strip() and text.strip():
            text = rewritten(written, parse(text, FILE).data)
    except PlannerError:
        text = question.text or ""
    return {"yaml": text, "command": as_command(question, pasted), "python": as_python(question, pasted)}


async def words(request: Request) -> Response:
    """Return a question as a file, a command and Python; nothing of one that is none yet.

    The body may have the text of the file that somebody has `written`.
    """
    body = await body_of(request) if request.method == "POST" else {}
    try:
        question = asked(request, request.path_params["verb"])
        written = str(body.get("written", "")) if isinstance(body, dict) else ""
        return JSONResponse(await run_in_threadpool(_said, question, request, written))
    except PlannerError:
        return JSONResponse({})


async def fields(request: Request) -> Response:
    """Return a file as the fields of a form."""
    return await _made(request, read_into_fields)


async def jobs(request: Request) -> Response:
    """Return a portfolio's file with a change, and its jobs."""
    return await _made(request, changed)


async def check(request: Request) -> Response:
    """Return what is wrong with a question that is being written."""
    return await _made(request, wrong_with)


async def _made(request: Request, make: Callable[..., Answered | Refusal]) -> Response:
    """Return what a process makes of the JSON of a request, as JSON; what is wrong with it is an answer too."""
    body, desk = await body_of(request), desk_of(request)
    if not isinstance(body, dict):
        raise InputError("expected a JSON object")
    made = await ended(desk.make(Queued(partial(make, body, desk.folders), "")), request)
    return Response(made.text, media_type="application/json") if isinstance(made, Answered) else JSONResponse(
        made.data() if isinstance(made, Refusal) else {})


async def download(request: Request) -> Response:
    """Return a question or its answer as a file."""
    verb, kind = request.path_params["verb"], request.path_params["kind"]
    question = asked(request, verb)
    if kind not in KINDS[verb]:
        raise InputError(f"{kind}: an answer of {verb} is not written as such a file")
    if kind == "yaml":
        text = await run_in_threadpool(as_yaml, question, open_catalog(desk_of(request).folders))
        return _attached("question.yaml", "application/yaml", by_own_names(text))
    desk = desk_of(request)
    # of a search that was stopped, what it had found: asked again, it would be searched to its end
    known = desk.jobs.get(request.query_params.get("job", ""))
    made = await ended(desk.ask(question) if known is None else known, request)
    if not isinstance(made, Answered):
        return response(made)
    if kind == "json":
        return _attached(f"{verb}.json", "application/json", made.text)
    job = desk.make(Queued(partial(as_file, verb, made.text, kind, desk.folders), ""))
    return response(await ended(job, request))


def _attached(name: str, kind: str, text: str) -> Response:
    return Response(text, media_type=kind, headers={"content-disposition": f'attachment; filename="{name}"'})


async def two(request: Request) -> Response:
    """Show two plans side by side, with what is asked differently."""
    asks = []
    for side in ("left", "right"):
        asks.append(_asked(dict(parse_qsl(request.query_params.get(side, ""))), "plan"))
    named = sorted({name for question in asks for name in (*question.values, SCENARIO, TEXT)})

    def value(question: Verb, name: str) -> str:
        return str({**question.values, SCENARIO: question.scenario or "", TEXT: question.text or ""}.get(name, ""))

    differ = [(called(name), *(value(question, name) for question in asks)) for name in named
              if len({value(question, name) for question in asks}) > 1]
    return _html("two.html.j2", request, title="Two plans", differ=differ, queries=[address(one) for one in asks])


async def api(request: Request) -> Response:
    """Describe the JSON API."""
    from planner.web.openapi import document

    return _html("api.html.j2", request, title="JSON API", document=document())


async def style(request: Request) -> Response:
    """Return the style of the report, which pages have too."""
    from importlib.resources import files

    return Response((files("planner.render.report") / "page.css").read_text("utf-8"), media_type="text/css")
