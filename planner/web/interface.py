"""The JSON API: a verb answered, or as a job whose progress is told, that can be canceled, and whose answer stays."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from planner.answer.objective import NAMES, amount
from planner.errors import EXIT_BUG, EXIT_INPUT, EXIT_INTERRUPTED, EXIT_IO, EXIT_STOPPED, InputError, PlannerError
from planner.text_io import decoded
from planner.web.answering import Answered, File
from planner.web.desk import Desk
from planner.web.guard import UPLOADS
from planner.web.openapi import document
from planner.web.pool import Ended, Full, Queued
from planner.web.question import OPTIONS, question_of
from planner.web.refusing import Refusal, refusal
from planner.web.uploads import put

STATUSES = {EXIT_INPUT: 400, EXIT_STOPPED: 422, EXIT_BUG: 500, EXIT_INTERRUPTED: 409, EXIT_IO: 507}
"""Exit code of the command -> status of the response, where there is no answer."""
BEAT = 0.2
"""Seconds between looks at a job whose progress somebody follows."""
GONE = 404


def routes() -> list[Route]:
    """Return the routes of the API."""
    return [*(Route(f"/api/{verb}", ask, methods=["POST"], name=verb) for verb in OPTIONS),
            Route("/api/jobs", begin, methods=["POST"]), Route("/api/jobs/{id}", stand, methods=["GET"]),
            Route("/api/jobs/{id}", cancel, methods=["DELETE"]), Route("/api/jobs/{id}/answer", answer),
            Route("/api/jobs/{id}/page", page), Route("/api/jobs/{id}/events", events),
            Route(UPLOADS, upload, methods=["POST"]), Route("/api/openapi.json", described)]


def desk_of(request: Request) -> Desk:
    """Return the desk of the server."""
    desk = request.app.state.desk
    assert isinstance(desk, Desk)
    return desk


async def body_of(request: Request) -> object:
    """Return the JSON of a request. Raises InputError."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise InputError("expected Content-Type: application/json")
    try:
        return json.loads(decoded(await request.body(), "request"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"expected JSON: {error}") from None


async def ask(request: Request) -> Response:
    """Answer a question: what `--json` prints, to the byte."""
    question = question_of(request.url.path.rpartition("/")[2], await body_of(request))
    return response(await ended(desk_of(request).ask(question), request))


async def begin(request: Request) -> Response:
    """Begin to answer: `{"verb": "plan", "question": {..}}`."""
    body = await body_of(request)
    if not isinstance(body, dict) or not isinstance(body.get("verb"), str):
        raise InputError('expected {"verb": "plan", "question": {"model": ..}}', key="verb")
    desk, paged = desk_of(request), body.get("page") is True
    try:
        job = desk.ask(question_of(body["verb"], body.get("question"), paged=paged))
    except Full:
        raise
    except PlannerError as error:
        if not paged:
            raise
        return JSONResponse(refusal(error).data())  # to a page that is an answer too
    job.askers += 1  # who comes back for it
    return JSONResponse(told(job, desk), 202, {"location": f"/api/jobs/{job.id}"})


async def stand(request: Request) -> Response:
    """Say how a job stands."""
    return JSONResponse(told(job_of(request), desk_of(request)))


async def cancel(request: Request) -> Response:
    """End a job's search with the best that it has."""
    job = job_of(request)
    job.cancel()
    return JSONResponse(told(job, desk_of(request)), 202)


async def answer(request: Request) -> Response:
    """Return a job's answer, once it is there."""
    return response(await ended(job_of(request)))


async def page(request: Request) -> Response:
    """Return a job's answer as a part of a page, once it is there."""
    made = await ended(job_of(request))
    return Response(made.page, media_type="text/html") if isinstance(made, Answered) else response(made)


async def events(request: Request) -> Response:
    """Tell a job's progress as it goes, as server-sent events."""
    job, desk = job_of(request), desk_of(request)

    async def lines() -> AsyncIterator[str]:
        said = ""
        while said != (now := json.dumps(told(job, desk))) or not job.result.done():
            if said != now:
                yield f"event: {'ended' if job.result.done() else 'progress'}\ndata: {now}\n\n"
                said = now
            await asyncio.sleep(BEAT)

    return StreamingResponse(lines(), media_type="text/event-stream")


async def upload(request: Request) -> Response:
    """Keep a file, the body as it is: `?name=samples.jsonl`; say what a question calls it."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/octet-stream":
        raise InputError("expected Content-Type: application/octet-stream, and the file as the body")
    try:
        return JSONResponse({"file": put(request.query_params.get("name", ""), await request.body())}, 201)
    except PlannerError as error:
        if "page" not in request.query_params:
            raise
        return JSONResponse(refusal(error).data())  # to a page that is an answer too


async def described(request: Request) -> Response:
    """Return the API as an OpenAPI document."""
    return JSONResponse(document())


def job_of(request: Request) -> Queued:
    """Return the job of an address. Raises KeyError."""
    return desk_of(request).jobs[request.path_params["id"]]


async def ended(job: Queued, request: Request | None = None) -> Ended:
    """Return what became of a job. Where all who asked leave, an estimate that still waits is not begun."""
    waiting = asyncio.shield(asyncio.wrap_future(job.result))
    gone = asyncio.ensure_future(_left(request)) if request is not None and not job.result.done() else None
    either: set[asyncio.Future[Any]] = {waiting, *([gone] if gone else ())}
    job.askers += 1
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    finally:
        job.askers -= 1
        if gone is not None:
            gone.cancel()
    if request is not None and not job.askers and not job.result.done():
        job.cancel()
    return await waiting


async def _left(request: Request) -> None:
    """Return when who asked is gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def told(job: Queued, desk: Desk) -> dict[str, Any]:
    """Return how a job stands, as JSON has it."""
    said: dict[str, Any] = {"id": job.id, "state": job.state, "waiting_before": desk.place(job),
                            "answer": f"/api/jobs/{job.id}/answer", "events": f"/api/jobs/{job.id}/events"}
    if job.so_far is not None:
        value, bound = (None if quanta is None else amount(job.so_far.goal, quanta)
                        for quanta in (job.so_far.value, job.so_far.bound))
        said["progress"] = {"objective": NAMES[job.so_far.goal], "done": round(job.so_far.done, 3), "value": value,
                            "bound": bound, "part": job.so_far.part}
    if job.result.done():
        ended = job.result.result()
        said |= ended.data() if isinstance(ended, Refusal) else {"final": isinstance(ended, File) or ended.is_final}
    return said


def response(made: Ended) -> Response:
    """Return an answer, or why there is none."""
    if isinstance(made, Answered):
        return Response(made.text, media_type="application/json", headers={"planner-exit-code": str(made.exit_code)})
    if isinstance(made, Refusal):
        return JSONResponse(made.data(), STATUSES.get(made.exit_code, 400))
    name = made.name.encode("ascii", "ignore").decode()
    return Response(made.content, media_type=made.kind,
                    headers={"content-disposition": f'attachment; filename="{name}"'})


async def refused(request: Request, error: Exception) -> Response:
    """Return what is wrong with a request."""
    if isinstance(error, Full):
        return JSONResponse({"error": {"message": str(error)}}, 503, {"retry-after": "60"})
    assert isinstance(error, PlannerError)
    return response(refusal(error))


async def unknown(request: Request, error: Exception) -> Response:
    """Say that there is no such job."""
    return JSONResponse({"error": {"message": "no such job: the server knows the latest ones only; ask again"}}, GONE)
