"""Systems of npm: their rows where something is missing, the process that is asked, and the packages themselves."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from tests.e2e.conftest import run

from foldline.bench.corpus import DirtyTalk, context
from foldline.bench.measures import BenchSetup
from foldline.bench.rivals import npm
from foldline.bench.run import run_bench
from foldline.bench.system import NPM, clock, message_texts, size
from foldline.bench.systems import SYSTEMS, select_systems
from foldline.dialects import get

NAMES = [one.name for one in SYSTEMS.values() if one.package.startswith(NPM)]
BUDGET = 3_000
NEWER_NODE = "0."  # the version of Mastra that an old Node.js gets


@pytest.fixture(autouse=True)
def ended():
    """Have no process outlive its test."""
    yield
    if npm._node.cache_info().currsize:
        npm._node().close()


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("FOLDLINE_NODE_MODULES", str(tmp_path / "node_modules"))
    return tmp_path / "node_modules"


@pytest.fixture
def package(place):
    """Write a package of npm."""
    if shutil.which("node") is None:
        pytest.skip("no node: install Node.js")

    def written(name, code):
        folder = place / name
        folder.mkdir(parents=True)
        described = {"name": name, "version": "1.2.3", "type": "module", "exports": "./index.js"}
        (folder / "package.json").write_text(json.dumps(described))
        (folder / "index.js").write_text(code)

    return written


# ---- what is missing


def problem(name):
    return (
        run_bench(select_systems([name]), ["rules"], BenchSetup(), "", jobs=1).rows[0].cells["rules"].problem
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_package_that_is_not_installed(name, place, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _: "/bin/node")
    asked = SYSTEMS[name].package.removeprefix(NPM)
    folders = "in this folder or the folder in FOLDLINE_NODE_MODULES"
    assert problem(name) == f"not installed: npm install {asked}, {folders}"


def test_without_node(package, monkeypatch):
    package("ai", "")
    assert SYSTEMS["ai-prune-messages"].version == "1.2.3"
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert SYSTEMS["ai-prune-messages"].version is None
    assert problem("ai-prune-messages") == "not installed: install Node.js first"


@pytest.mark.parametrize("points", ["node_modules", "."])
def test_the_folder_may_be_named_or_the_one_above_it(package, place, monkeypatch, points):
    package("ai", "")
    monkeypatch.setenv("FOLDLINE_NODE_MODULES", str(place.parent / points))
    assert SYSTEMS["ai-prune-messages"].version == "1.2.3"


# ---- the process


def test_messages_come_back_as_they_went_and_lines_that_a_package_prints_are_no_answers(package):
    package("ai", "export const pruneMessages = ({ messages }) => { console.log('{}'); return messages };")
    messages = [{"role": "system", "content": "Be short."}, *DirtyTalk(3).messages(200)]
    decode = get("openai-chat").decode
    back = SYSTEMS["ai-prune-messages"].make(BUDGET)(messages)
    assert [decode(one).parts for one in back] == [decode(one).parts for one in messages]


def test_a_fold_that_fails_or_ends_the_process_leaves_the_next_one_well(package):
    package(
        "ai",
        """let number = 0;
        export function pruneMessages({ messages }) {
          if (messages.length === 1) throw new TypeError("no history");
          if (messages.length === 2) process.exit(1);
          return [{ role: "user", content: [{ type: "text", text: `fold ${++number}` }] }];
        }""",
    )
    fold = SYSTEMS["ai-prune-messages"].make(BUDGET)
    said = [{"role": "user", "content": "Go."}] * 3
    assert fold(said)[0]["content"] == "fold 1"
    with pytest.raises(RuntimeError, match="TypeError: no history"):
        fold(said[:1])
    assert fold(said)[0]["content"] == "fold 2"
    with pytest.raises(Exception, match="truncated"):
        fold(said[:2])
    assert fold(said)[0]["content"] == "fold 1"  # of a new process


def test_what_a_system_takes_elsewhere_counts(package):
    package(
        "ai",
        """export function pruneMessages({ messages }) {
          process.cpuUsage = () => ({ user: 7_000_000, system: 2_000_000 });
          return messages;
        }""",
    )
    begun = clock()
    SYSTEMS["ai-prune-messages"].make(BUDGET)([{"role": "user", "content": "Go."}])
    assert round(clock() - begun) == 9


# ---- the packages


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """A folder with the packages; `FOLDLINE_NODE_MODULES` names one that has them already."""
    if ready := os.environ.get("FOLDLINE_NODE_MODULES"):
        return Path(ready)
    command = shutil.which("npm")
    if command is None or shutil.which("node") is None:
        pytest.skip("no npm: install Node.js with npm")
    folder = tmp_path_factory.mktemp("npm")
    names = dict.fromkeys(SYSTEMS[name].package.removeprefix(NPM) for name in NAMES)
    run(command, "install", "--no-fund", "--no-audit", "--prefix", folder, *names)
    return folder


@pytest.mark.soak
@pytest.mark.parametrize("name", NAMES)
def test_a_package_folds_a_session(name, packages, monkeypatch):
    monkeypatch.setenv("FOLDLINE_NODE_MODULES", str(packages))
    system = SYSTEMS[name]
    if name.startswith("mastra") and str(system.version).startswith(NEWER_NODE):
        pytest.skip("this Node.js gets a Mastra from before its prompt processors")
    messages = context(12_000, 1)
    view = list(system.make(BUDGET)(messages))
    assert view[-1]["content"] == messages[-1]["content"]
    assert 0 < sum(map(size, message_texts(view))) < 1.1 * BUDGET
    assert get("openai-chat").validate(view) == []
