"""The documentation is true: its generated parts are current, its links resolve, and nothing is left out."""

import os
import re
import shlex
from pathlib import Path
from typing import get_args

import pytest

import planner as package
from planner.catalog.load import Catalog
from planner.cli.main import COMMANDS, main
from planner.layouts.axes import AXES, RECOMPUTE
from planner.layouts.rules import RULES
from planner.scenario.limits import Objective
from planner.scenario.serving import CacheFormat, Disaggregated, Quantization, Serving
from tests.answered import remembering  # noqa: F401 - plans that pages share

ROOT = Path(__file__).parents[1]
README, CHANGELOG = ROOT / "README.md", ROOT / "CHANGELOG.md"
PAGES = [README, ROOT / "CONTRIBUTING.md", CHANGELOG, *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w*) ?([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
"""A fenced block: language, the file that it is or is taken from where it names one, and text."""
SHIPPED = ("catalogs/", "scenarios/")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
COUNTED = {"gpus": "GPUs", "nodes": "node types", "fabrics": "fabrics", "prices": "price lists",
           "stacks": "training stacks", "engines": "inference engines", "models": "models"}
SOURCES = 5
"""Rows of the README that have a source left out: of each row its own, and those of docs/transfer.md."""
GENERATED = "generated"
"""In the place of a file: the block is what a command prints on a screen, to the letter, or where it ends with `...`
its first paragraph; PLANNER_UPDATE_GOLDEN=1 writes it."""
EXIT = re.compile(r"\s# exit (\d+)$")


def place(path):
    return path.relative_to(ROOT).as_posix()


def blocks(page, language):
    return [body for tag, name, body in FENCE.findall(page.read_text()) if tag == language and name != GENERATED]


def files(page):
    """Return (path, text) of the blocks that name a file."""
    return [(name, body) for _, name, body in FENCE.findall(page.read_text()) if name not in ("", GENERATED)]


def flat(text):
    return " ".join(text.split())


def generated():
    for page in PAGES:
        for _, name, body in FENCE.findall(page.read_text()):
            if name == GENERATED:
                yield pytest.param(page, body, id=f"{place(page)}: {body.splitlines()[0]}")


@pytest.mark.usefixtures("remembering")
@pytest.mark.parametrize(("page", "body"), list(generated()))
def test_generated_example_is_what_is_printed(page, body, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PLANNER_CATALOGS", raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    for name, text in files(page):
        if not name.startswith(SHIPPED):
            (tmp_path / name).write_text(text)
    command, rest = re.match(r"(\$ (?:[^\n]*\\\n)*[^\n]*\n)(.*)", body, re.DOTALL).groups()
    code = EXIT.search(command.strip())
    argv = shlex.split(EXIT.sub("", command.strip()).replace("\\\n", " "))[2:]
    assert main(argv) == int(code[1] if code else 0)
    printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    if rest.endswith("...\n"):
        printed = [*printed[:printed.index("")], "..."]
    if os.environ.get("PLANNER_UPDATE_GOLDEN"):
        page.write_text(page.read_text().replace(body, command + "\n".join(printed) + "\n"))
    assert page.read_text().count(command + "\n".join(printed) + "\n```") == 1


@pytest.mark.parametrize("page", PAGES, ids=place)
def test_excerpts_are_of_the_shipped_file(page):
    for name, text in files(page):
        if name.startswith(SHIPPED):
            shipped = [line.split("  #")[0].rstrip() for line in (ROOT / name).read_text().splitlines()]
            assert [line for line in text.splitlines() if line != "..." and line not in shipped] == [], name


@pytest.mark.parametrize("page", PAGES, ids=place)
def test_links_inside_the_project_resolve(page):
    for target in LINK.findall(FENCE.sub("", page.read_text())):
        if target.startswith(("https://", "http://")):
            continue
        file, _, anchor = target.partition("#")
        linked = (page.parent / file).resolve() if file else page
        assert linked.exists(), f"{place(page)} links to {target}"
        assert not anchor or anchor in anchors(linked), f"{place(page)} links to {target}"


def anchors(page):
    """Return the anchors of the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_readme_begins_with_the_two_lines_that_stand_alone():
    _, _, body = FENCE.findall(README.read_text())[0]
    run, test = body.splitlines()
    assert run.startswith("python3 -m venv ")
    assert run.endswith(" plan scenarios/llama-3.1-70b-pretrain.yaml")
    assert test.startswith("python3 -m venv ")
    assert test.endswith(" -m pytest -n 2 --dist worksteal")


def figures():
    """Return the rows that the README may show, by the words that they begin with: those of the generated pages."""
    validation, transfer = ((ROOT / "docs" / f"{name}.md").read_text() for name in ("validation", "transfer"))
    rows = re.findall(r"^\| [^|]+ \| (?:[a-z]\w+ \| )?\d+ \| [\d.]+% \|.*$", validation, re.MULTILINE)
    runs, held = re.search(r"^Constants, (\d+) runs .*, (\S+ and \S+) fitted without the row, or its source\.$",
                           validation, re.MULTILINE).groups()
    rows.append(f"| each row's own | {runs} | {held.replace(' and ', ' | ')} |")
    of_source = r"^\| (\w+) \| (\d+) \| \S+ / \S+ \| (\S+ / \S+) \|"
    for name, count, others in re.findall(of_source, transfer, re.MULTILINE):
        rows.append(f"| {name} | {count} | {others.replace(' / ', ' | ')} |")
    # of rows that begin alike the first is the headline, but a source left out is what transfer.md says of it
    return {words(row): row for row in [*rows[:-SOURCES][::-1], *rows[-SOURCES:]]}


def words(row):
    """Return the cells of a row before its first figure."""
    return row[:re.search(r"\| \d", row).start()]


def trusted(readme):
    """Return the rows of figures in the README's section on trust."""
    section = readme[readme.index("## How far to trust it"):readme.index("## Commands")]
    return re.findall(r"^  (\|.* \| \d.*)$", section, re.MULTILINE)


def updated(readme):
    """Return the README as it should be; PLANNER_UPDATE_GOLDEN=1 writes it."""
    if os.environ.get("PLANNER_UPDATE_GOLDEN"):
        README.write_text(readme)
    return readme


def test_readme_has_the_figures_of_the_validation():
    readme, known = README.read_text(), figures()
    for row in trusted(readme):
        readme = readme.replace(f"  {row}\n", f"  {known[words(row)]}\n")
    validation = (ROOT / "docs" / "validation.md").read_text()
    for kind, of in (("step", "step time"), ("memory", "memory")):
        inside = re.search(rf"^`{kind}-residuals`: (\d+% of \d+ rows) inside with", validation, re.MULTILINE)
        readme = re.sub(rf"\d+% of \d+ rows of {of}\b", f"{inside.group(1)} of {of}", readme)
    runs, off, held = re.search(r"^\| scored \| left out \| (\d+) \| ([\d.]+)% \|.*\| ([\d.]+)% \|$", validation,
                                re.MULTILINE).groups()
    readme = re.sub(r"GPU-hours of \d+ published", f"GPU-hours of {runs} published", readme)
    of_runs = rf"\1 {float(off):.0f}%, {float(held):.0f}%"
    readme = re.sub(r"(organization left out: median error) \d+%, \d+%", of_runs, readme)
    assert updated(readme) == README.read_text()


def test_readme_shows_errors_with_the_source_left_out_before_those_in_sample():
    shown = [words(row) for row in trusted(README.read_text())]
    left_out = [at for at, row in enumerate(shown) if "each row's own" in row or row.startswith("| a ")]
    in_sample = shown.index("| tokens_per_s_per_gpu ")
    assert len(left_out) == 10
    assert max(left_out) < in_sample


def test_readme_counts_what_the_catalog_has():
    readme, catalog = README.read_text(), Catalog()
    (sentence,) = re.findall(r"^The catalog has [^;]+;", readme, re.MULTILINE)
    counted = sentence
    for kind, noun in COUNTED.items():
        counted, found = re.subn(rf"\d+ {noun}\b", f"{len(catalog.names(kind))} {noun}", counted)
        assert found == 1, noun
    assert updated(readme.replace(sentence, counted)) == README.read_text()


@pytest.mark.parametrize("page", [page for page in PAGES if page != CHANGELOG], ids=place)
def test_every_file_that_a_page_names_exists(page):
    known = [place(path) for top in ("planner", "tests", "benchmarks") for path in (ROOT / top).rglob("*.py")]
    named = re.findall(r"`([\w/]+\.py)`", FENCE.sub("", page.read_text()))
    gone = [name for name in named if not any(f"/{path}".endswith(f"/{name}") for path in known)]
    assert not gone, f"{place(page)} names {gone}"


NAMED_IN = re.compile(r"`(?:class )?(\w+)`[^`.|]{0,40}? (?:in|of|from) `((?:[\w/]+/)?\w+\.py)`")
"""A name that a page says is in a module: "`MEASURES` in `ask/explain/relaxing.py`"."""
HAS = re.compile(r"`((?:[\w/]+/)?\w+\.py)`: (?:an? |the )?`(\w+)`")
"""The same the other way round: "`solver/search/job.py`: `complexities`"."""


def modules_named(name):
    return [path for top in ("planner", "tests") for path in (ROOT / top).rglob("*.py")
            if f"/{place(path)}".endswith(f"/{name}")]


@pytest.mark.parametrize("page", [page for page in PAGES if page != CHANGELOG], ids=place)
def test_every_name_that_a_page_says_a_module_has_is_there(page):
    text = flat(FENCE.sub("", page.read_text()))
    named = [*NAMED_IN.findall(text), *((name, module) for module, name in HAS.findall(text))]
    gone = [(name, module) for name, module in named if modules_named(module)
            and not any(re.search(rf"\b{name}\b", path.read_text()) for path in modules_named(module))]
    assert not gone, f"{place(page)} says that these are there: {gone}"


@pytest.mark.parametrize("page", [page for page in PAGES if page != CHANGELOG], ids=place)
def test_every_folder_and_dotted_name_of_the_package_exists(page):
    text = FENCE.sub("", page.read_text())
    folders = re.findall(r"`((?:planner|tests|catalogs|scenarios|benchmarks)/(?:[\w/]+/)?)`", text)
    dotted = re.findall(r"`planner\.(\w+)[(`]", text)
    classes = re.findall(r"`([A-Z][a-z]\w+)\.(\w+)[(`]", text)
    source = "\n".join(path.read_text() for path in (ROOT / "planner").rglob("*.py"))
    assert [folder for folder in folders if not (ROOT / folder).is_dir()] == []
    assert [name for name in dotted if not hasattr(package, name)] == []
    assert [(owner, name) for owner, name in classes
            if f"class {owner}" not in source or not re.search(rf"\b{name}\b", source)] == []


def test_what_names_of_modules_are_checked():
    pages = flat("\n".join(FENCE.sub("", page.read_text()) for page in PAGES if page != CHANGELOG))
    assert ("MEASURES", "ask/explain/relaxing.py") in NAMED_IN.findall(pages)
    assert ("planner/solver/search/job.py", "complexities") in HAS.findall(pages)
    assert NAMED_IN.findall("`gone` in `solver/check.py`") == [("gone", "solver/check.py")]


SAID = sorted(path for room in ("answer", "ask", "cli", "jobs", "render", "scenario")
              for path in (ROOT / "planner" / room).rglob("*.py"))
"""Modules whose words users read: messages, help, tables, and descriptions of the JSON Schema."""


@pytest.mark.parametrize("path", [*PAGES, *SAID], ids=place)
def test_services_are_told_in_the_terms_of_the_field(path):
    """A plan meets a latency target; it does not hold a level."""
    holds = r"\bh[eo]ld(?:s|ing)? (?:the|its|a|every) (?:service )?levels?\b"
    assert re.findall(rf"{holds}|\bwithin (?:the|every|its) levels?\b", flat(path.read_text())) == []


def test_readme_lists_every_command():
    assert all(f"`planner {command}" in README.read_text() for command in COMMANDS)


@pytest.mark.parametrize(("page", "names"), [
    ("concepts", [axis.name for axis in AXES]),
    ("concepts", RECOMPUTE),
    ("concepts", get_args(Objective)),
    ("concepts", RULES),
    ("catalogues", Catalog().names("stacks")),
    ("serving", Serving.model_fields),
    ("serving", [*get_args(Quantization), *get_args(CacheFormat), *get_args(Disaggregated)]),
], ids=["axes", "recompute modes", "objectives", "rules", "stacks", "keys of serving", "formats of serving"])
def test_every_name_is_documented(page, names):
    text = (ROOT / "docs" / f"{page}.md").read_text()
    missing = [name for name in names if f"`{name}`" not in text]
    assert not missing, f"docs/{page}.md does not mention {missing}"


def test_contributing_has_every_folder_of_the_house():
    folders = [path.parent.name for path in (ROOT / "planner").glob("*/__init__.py")]
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert all(f"`{folder}/`" in text for folder in folders)


def test_changelog_has_this_version_and_what_is_coming():
    text = CHANGELOG.read_text()
    assert "## [Unreleased]" in text
    assert package.__version__ in text
