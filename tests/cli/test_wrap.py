"""`foldline wrap`, `unwrap` and `doctor`, on the settings of other tools in a home of their own."""

from __future__ import annotations

import json
import os
import re
import stat
import threading
import tomllib
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from tests.mcp.homes import put

from foldline.wrapping import backup

CLAUDE = """{
    "permissions": {"allow": ["Bash(npm run lint)"]},
    "env": {
        "FOO": "bär"
    },
    "model": "opus"
}
"""
CODEX = """# mine
model = "gpt-5.4"  # the usual one

[mcp_servers.docs]
command = "docs"

[projects."/work"]
trust_level = "trusted"
"""
OPENCODE = """{
  "$schema": "https://opencode.ai/config.json",
  "provider": {"anthropic": {"options": {"baseURL": "https://proxy.example/v1", "timeout": 600000}}},
  "mcp": {"docs": {"type": "local", "command": ["docs"]}}
}"""
FILES = {
    "claude": {".claude/settings.json": CLAUDE, ".claude.json": '{"numStartups": 3, "projects": {}}'},
    "codex": {".codex/config.toml": CODEX},
    "opencode": {".config/opencode/opencode.json": OPENCODE},
    "pi": {".pi/agent/models.json": '{"providers": {}}\n', ".pi/agent/settings.json": "{}"},
}
AGENTS = tuple(FILES)


@pytest.fixture(autouse=True)
def home(away_from_home, monkeypatch):
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "PI_CODING_AGENT_DIR", "COPILOT_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    return away_from_home


@pytest.fixture
def url(monkeypatch):
    """Something that answers as a gateway does."""

    class Health(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200 if self.path == "/health" else 404)
            self.end_headers()

        def log_message(self, *_):
            pass

    monkeypatch.setattr("foldline.cli.commands.wrap.PATIENCE", 120)
    with HTTPServer(("127.0.0.1", 0), Health) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def write(home, agent):
    for name, text in FILES[agent].items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)


def tree(home):
    return {
        str(path.relative_to(home)): (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
        for path in home.rglob("*")
        if path.is_file()
    }


def read(path):
    return tomllib.loads(path.read_text()) if path.suffix == ".toml" else json.loads(path.read_text())


@pytest.mark.parametrize("there", [True, False], ids=["kept", "made"])
@pytest.mark.parametrize("agent", AGENTS)
def test_unwrapping_puts_every_file_back_to_the_byte(foldline, home, url, agent, there):
    if there:
        write(home, agent)
    before = tree(home)
    done = foldline("wrap", agent, "--gateway", url, "--json")
    assert done.code == 0
    assert {Path(one["file"]) for one in done.json["files"]} == {home / name for name in FILES[agent]}
    for name, text in FILES[agent].items() if there else ():
        own = tomllib.loads(text) if name.endswith(".toml") else json.loads(text)
        wrapped = read(home / name)
        assert [key for key in wrapped if key in own] == list(own)  # the order
        assert url in json.dumps(wrapped) or "foldline" in json.dumps(wrapped) or "compaction" in wrapped
    again = foldline("wrap", agent, "--gateway", url, "--json")  # twice is once
    assert again.code == 0
    back = foldline("unwrap", agent)
    assert back.code == 0
    assert back.out.count("to the byte" if there else "there was none before") == len(FILES[agent])
    assert tree(home) == before


def test_each_agent_is_set_as_its_own_pages_say(foldline, home, url):
    for agent in AGENTS:
        write(home, agent)
        assert foldline("wrap", agent, "--gateway", url).code == 0
    settings = read(home / ".claude/settings.json")
    assert settings["env"] == {"FOO": "bär", "ANTHROPIC_BASE_URL": url, "DISABLE_AUTO_COMPACT": "1"}
    server = read(home / ".claude.json")["mcpServers"]["foldline"]
    assert (server["type"], server["args"][-3:]) == ("stdio", ["mcp", "--agent", "claude"])
    codex = read(home / ".codex/config.toml")
    assert codex["openai_base_url"] == f"{url}/v1"
    assert codex["mcp_servers"]["foldline"]["args"][-3:] == ["mcp", "--agent", "codex"]
    assert codex["mcp_servers"]["docs"] == {"command": "docs"}
    assert (
        (home / ".codex/config.toml").read_text().startswith('# mine\nmodel = "gpt-5.4"  # the usual one\n')
    )
    opencode = read(home / ".config/opencode/opencode.json")
    assert opencode["provider"]["anthropic"]["options"] == {"baseURL": f"{url}/v1", "timeout": 600_000}
    assert opencode["mcp"]["foldline"]["command"][-3:] == ["mcp", "--agent", "opencode"]
    assert opencode["compaction"] == {"auto": False, "prune": False}
    providers = read(home / ".pi/agent/models.json")["providers"]
    assert providers == {"anthropic": {"baseUrl": url}, "openai": {"baseUrl": f"{url}/v1"}}


@pytest.mark.parametrize("agent", AGENTS)
def test_what_was_changed_since_stays_and_only_ours_is_taken_out(foldline, home, url, agent):
    write(home, agent)
    foldline("wrap", agent, "--gateway", url)
    name = next(iter(FILES[agent]))
    path = home / name
    if path.suffix == ".toml":
        path.write_text(path.read_text() + '\n[tui]\ntheme = "dark"  # since\n')
    else:
        path.write_text(json.dumps({**read(path), "theme": "dark"}))
    back = foldline("unwrap", agent)
    assert f"{path} was changed since" in back.out
    text = FILES[agent][name]
    own = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    assert read(path) == {**own, **({"tui": {"theme": "dark"}} if agent == "codex" else {"theme": "dark"})}
    if agent == "codex":
        assert "# mine" in path.read_text()
        assert "# since" in path.read_text()
    assert not [one for one in tree(home) if "foldline" in one]


def test_a_value_that_the_user_set_meanwhile_is_the_user_s(foldline, home, url):
    write(home, "claude")
    foldline("wrap", "claude", "--gateway", url)
    path = home / ".claude/settings.json"
    settings = read(path)
    settings["env"]["ANTHROPIC_BASE_URL"] = "https://mine.example"
    path.write_text(json.dumps(settings))
    foldline("unwrap", "claude")
    assert read(path)["env"] == {"FOO": "bär", "ANTHROPIC_BASE_URL": "https://mine.example"}


def test_claude_code_is_given_a_status_line_where_it_has_none(foldline, home, url):
    write(home, "claude")
    path = home / ".claude/settings.json"
    foldline("wrap", "claude", "--gateway", url)
    assert read(path)["statusLine"]["command"].endswith("foldline statusline")
    foldline("unwrap", "claude")
    own = {"statusLine": {"type": "command", "command": "mine"}}
    path.write_text(json.dumps(own))
    foldline("wrap", "claude", "--gateway", url)
    foldline("wrap", "claude", "--gateway", url)
    assert read(path)["statusLine"] == own["statusLine"]
    foldline("unwrap", "claude")
    assert path.read_text() == json.dumps(own)


def test_an_address_that_was_set_before_is_told_of_and_comes_back(foldline, home, url):
    write(home, "opencode")
    done = foldline("wrap", "opencode", "--gateway", url)
    assert "provider.anthropic.options.baseURL was 'https://proxy.example/v1'" in done.err
    assert "--anthropic-upstream" in done.err
    path = home / ".config/opencode/opencode.json"
    path.write_text(json.dumps({**read(path), "theme": "dark"}))
    foldline("unwrap", "opencode")
    assert read(path) == {**json.loads(OPENCODE), "theme": "dark"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("opencode.jsonc", '{\n  // mine\n  "model": "m",\n}'),
        ("opencode.json", '{"model": "a", "model": "b"}'),
        ("opencode.json", '{"provider": "none"}'),
        ("opencode.json", "[1]"),
        ("opencode.json", '{"share": NaN}'),
    ],
)
def test_a_file_that_cannot_be_edited_safely_is_refused_by_name_and_left_as_it_is(
    foldline, home, url, name, text
):
    path = home / ".config/opencode" / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    before = tree(home)
    refused = foldline("wrap", "opencode", "--gateway", url)
    assert refused.code == 2
    assert name in refused.err
    assert "left as it is" in refused.err
    assert tree(home) == before


def test_where_one_file_is_refused_none_is_changed(foldline, home, url):
    write(home, "claude")
    (home / ".claude.json").write_text("{ broken")
    before = tree(home)
    assert foldline("wrap", "claude", "--gateway", url).code == 2
    assert tree(home) == before


def test_where_it_is_interrupted_between_two_files_none_is_changed(foldline, home, url, monkeypatch):
    write(home, "claude")
    before, change = tree(home), backup.change
    second = home / ".claude.json"

    def cut(file):
        if file.path == second:
            raise KeyboardInterrupt
        return change(file)

    monkeypatch.setattr("foldline.cli.commands.wrap.change", cut)
    assert foldline("wrap", "claude", "--gateway", url).code == 130
    assert tree(home) == before


def test_half_an_emoji_in_a_file_is_kept(foldline, home, url):
    write(home, "claude")
    path = home / ".claude.json"
    path.write_text('{"history": "cut: \\ud83d"}')
    assert foldline("wrap", "claude", "--gateway", url).code == 0
    assert read(path)["mcpServers"]["foldline"]
    path.write_text(json.dumps({**read(path), "theme": "dark"}))
    assert foldline("unwrap", "claude").code == 0
    assert read(path) == {"history": "cut: \ud83d", "theme": "dark"}


def test_what_was_wrapped_is_found_though_another_file_stands_beside_it_by_now(foldline, home, url):
    write(home, "opencode")
    foldline("wrap", "opencode", "--gateway", url)
    other = home / ".config/opencode/opencode.jsonc"
    other.write_text("// mine\n{}")
    assert "to the byte" in foldline("unwrap", "opencode").out
    assert (home / ".config/opencode/opencode.json").read_text() == OPENCODE
    assert other.read_text() == "// mine\n{}"


def test_an_address_of_the_user_s_own_is_no_gateway_to_the_doctor(foldline, home, url):
    write(home, "opencode")
    told = foldline("doctor", "--gateway", url, "--json")
    assert told.code == 0
    assert told.json["agents"]["opencode"]["gateway"] is None


def test_a_link_stays_a_link_and_its_file_keeps_its_mode(foldline, home, url, tmp_path):
    kept = tmp_path / "dotfiles.toml"
    kept.write_text(CODEX)
    kept.chmod(0o640)
    link = home / ".codex/config.toml"
    link.parent.mkdir()
    link.symlink_to(kept)
    foldline("wrap", "codex", "--gateway", url)
    assert link.is_symlink()
    assert "openai_base_url" in kept.read_text()
    foldline("unwrap", "codex")
    assert link.is_symlink()
    assert (kept.read_text(), stat.S_IMODE(kept.stat().st_mode)) == (CODEX, 0o640)


def test_a_spoilt_copy_is_not_put_back(foldline, home, url):
    write(home, "codex")
    foldline("wrap", "codex", "--gateway", url)
    copy = home / ".codex/config.toml.foldline-backup"
    copy.write_text("spoilt")
    wrapped = (home / ".codex/config.toml").read_text()
    refused = foldline("unwrap", "codex")
    assert refused.code == 2
    assert "is not the file as it was" in refused.err
    assert (home / ".codex/config.toml").read_text() == wrapped


def test_where_the_copy_is_gone_only_ours_is_taken_out(foldline, home, url):
    write(home, "codex")
    foldline("wrap", "codex", "--gateway", url)
    (home / ".codex/config.toml.foldline-backup").unlink()
    back = foldline("unwrap", "codex")
    assert back.code == 0
    assert "has no copy any more" in back.out
    assert read(home / ".codex/config.toml") == tomllib.loads(CODEX)
    assert not [one for one in tree(home) if "foldline" in one]


def test_what_stood_there_is_told_of_without_its_secrets(foldline, home, url):
    path = home / ".config/opencode/opencode.json"
    path.parent.mkdir(parents=True)
    own = {
        "provider": {"anthropic": {"options": {"baseURL": "https://me:pw@proxy.example/v1"}}},
        "mcp": {"foldline": {"type": "local", "environment": {"API_KEY": "s3cr3t-Value9"}}},
    }
    path.write_text(json.dumps(own))
    done = foldline("wrap", "opencode", "--gateway", url)
    assert "baseURL was 'https://[redacted]@proxy.example/v1'" in done.err
    assert "mcp.foldline was " in done.err
    assert not [one for one in ("me:pw", "s3cr3t-Value9") if one in done.err + done.out]
    foldline("unwrap", "opencode")
    assert read(path) == own


def test_without_a_gateway_nothing_is_set_unless_it_is_forced(foldline, home):
    refused = foldline("wrap", "codex", "--gateway", "http://127.0.0.1:9")
    assert refused.code == 2
    assert "`foldline serve`" in refused.err
    assert tree(home) == {}
    assert foldline("wrap", "codex", "--gateway", "http://127.0.0.1:9", "--force").code == 0
    assert foldline("wrap", "codex", "--gateway", "no address").code == 2
    assert foldline("wrap", "pi", "--no-gateway").code == 2
    assert foldline("wrap", "codex", "--no-gateway", "--json").json["gateway"] is None
    assert "openai_base_url" not in (home / ".codex/config.toml").read_text()
    assert "is not wrapped" in foldline("unwrap", "claude").err


def test_the_doctor_says_what_is_set_and_what_to_do(foldline, home, url, monkeypatch):
    put(home, Path.cwd(), "codex")
    program = home / "bin/codex"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    told = foldline("doctor", "--gateway", url, "--json").json
    assert told["gateways"] == {url: True}
    codex = told["agents"]["codex"]
    assert (codex["installed"], codex["wrapped"], codex["gateway"], codex["mcp"]) == (
        True,
        False,
        None,
        False,
    )
    assert codex["session"].endswith(".jsonl")
    assert any("`foldline wrap codex`" in line for line in told["advice"])

    foldline("wrap", "codex", "--gateway", url)
    known = foldline("doctor", "--gateway", url, "--json").json["agents"]["codex"]
    assert (known["wrapped"], known["gateway"], known["mcp"]) == (True, url, True)
    text = foldline("doctor", "--gateway", url)
    assert text.code == 0
    assert re.search(r"Codex: wrapped gateway http://\S+, MCP server; session here: ", text.out)

    foldline("wrap", "codex", "--gateway", "http://127.0.0.1:9", "--force")
    dead = foldline("doctor", "--gateway", url)
    assert dead.code == 1
    assert "`foldline unwrap codex`" in dead.out
