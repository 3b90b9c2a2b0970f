"""One server for all tests of a process: starting its processes takes longer than most answers."""

import shutil
import socket
from collections.abc import Iterator
from threading import Thread

import httpx
import pytest
import uvicorn

from planner.web.server import application, configured

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="session")
def monkeypatch_of_all() -> Iterator[pytest.MonkeyPatch]:
    """Yield what changes the planner for all tests here."""
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="session")
def web(tmp_path_factory: pytest.TempPathFactory, monkeypatch_of_all: pytest.MonkeyPatch) -> Iterator[httpx.Client]:
    """Yield a client of a server for this machine alone."""
    for name in ("MOST_PLANS", "ESTIMATORS"):  # a process more takes as long to start as most tests
        monkeypatch_of_all.setattr(f"planner.web.desk.{name}", 1)
    monkeypatch_of_all.setattr("planner.web.desk.BEHIND", 0)  # other tests leave nothing to what yields to them
    monkeypatch_of_all.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        app = application((), tmp_path_factory.mktemp("answers"))
        server = uvicorn.Server(configured(app))
        thread = Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        at = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with httpx.Client(base_url=at, timeout=120, trust_env=False) as client:
            yield client
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="session")
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(chromium, web):
    """Yield a page; what its console says, and who else it asks, fails the test."""
    context = chromium.new_context(base_url=str(web.base_url), viewport={"width": 1280, "height": 900})
    context.set_default_timeout(60_000)
    page, wrong = context.new_page(), []
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: None if request.url.startswith((str(web.base_url), "data:")) else
            wrong.append(request.url))
    yield page
    context.close()
    assert wrong == []
