"""`foldline wrap`, `unwrap` and `doctor`, on the settings of other tools in a home of their own."""

from __future__ import annotations

import json
import os
import pwd
import re
import stat
import threading
import tomllib
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import yaml
from tests.mcp.homes import write_transcript

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
HERMES = """# mine
model:
  provider: anthropic  # with a key
  default: "claude-sonnet-4-6"

compression:
  # later than usual
  threshold: 0.8   # of the window

# ── what it may do ──
toolsets:
- web
- 'terminal'
"""
FILES = {
    "claude": {".claude/settings.json": CLAUDE, ".claude.json": '{"numStartups": 3, "projects": {}}'},
    "codex": {".codex/config.toml": CODEX},
    "opencode": {".config/opencode/opencode.json": OPENCODE},
    "pi": {".pi/agent/models.json": '{"providers": {}}\n', ".pi/agent/settings.json": "{}"},
}
FILES["hermes"] = {
    ".hermes/config.yaml": HERMES,
    ".hermes/.env": "# keys\nexport ANTHROPIC_API_KEY='k'\nTZ=UTC",
}
AGENTS = tuple(FILES)
SINCE = {
    ".toml": ('\n[tui]\ntheme = "dark"  # since\n', {"tui": {"theme": "dark"}}),
    ".yaml": ("\ntheme: dark  # since\n", {"theme": "dark"}),
}


@pytest.fixture(autouse=True)
def home(away_from_home, monkeypatch):
    for name in (
        "CLAUDE_CONFIG_DIR",
        "CODEX_HOME",
        "PI_CODING_AGENT_DIR",
        "COPILOT_HOME",
        "XDG_CONFIG_HOME",
        "HERMES_HOME",
        "CLAUDE_CODE_USE_BEDROCK",
        "CLAUDE_CODE_USE_VERTEX",
        "CLAUDE_CODE_USE_FOUNDRY",
        "ANTHROPIC_BASE_URL",
    ):
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

    monkeypatch.setattr("foldline.cli.commands.wrap.TIMEOUT", 120)
    with HTTPServer(("127.0.0.1", 0), Health) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def write(home, agent):
    for name, text in FILES[agent].items():
        put(home / name, text)


def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def install(home, program):
    """Put a program into a folder that is made for the PATH; return the folder."""
    path = home / "bin" / program
    put(path, "#!/bin/sh\n")
    path.chmod(0o755)
    return path.parent


def tree(home):
    return {
        str(path.relative_to(home)): (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
        for path in home.rglob("*")
        if path.is_file()
    }


def parsed(name, text):
    if name.endswith(".env"):
        return dict(line.split("=") for line in text.splitlines() if "=" in line)
    kinds = {".toml": tomllib.loads, ".yaml": yaml.safe_load}
    return kinds.get(Path(name).suffix, json.loads)(text)


def read(path):
    return parsed(path.name, path.read_text())


# Hermes has to be set to a provider
@pytest.mark.parametrize(
    ("agent", "there"),
    [(one, there) for one in AGENTS for there in (True, False) if there or one != "hermes"],
)
def test_unwrapping_puts_every_file_back_to_the_byte(foldline, home, url, agent, there):
    if there:
        write(home, agent)
    before = tree(home)
    done = foldline("wrap", agent, "--gateway", url, "--json")
    assert done.code == 0
    assert {Path(one["file"]) for one in done.json["files"]} == {home / name for name in FILES[agent]}
    for name, text in FILES[agent].items() if there else ():
        own = parsed(name, text)
        wrapped = read(home / name)
        assert [key for key in wrapped if key in own] == list(own)  # the order
        assert url in json.dumps(wrapped) or "foldline" in json.dumps(wrapped) or "compaction" in wrapped
    again = foldline("wrap", agent, "--gateway", url, "--json")  # twice is once
    assert again.code == 0
    back = foldline("unwrap", agent)
    assert back.code == 0
    assert back.out.count("byte for byte" if there else "it did not exist before") == len(FILES[agent])
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
    hermes = read(home / ".hermes/config.yaml")
    assert hermes["model"] == {"provider": "anthropic", "default": "claude-sonnet-4-6"}
    assert hermes["compression"] == {"enabled": False, "threshold": 0.8}
    assert hermes["mcp_servers"]["foldline"]["args"][-3:] == ["mcp", "--agent", "hermes"]
    assert read(home / ".hermes/.env")["ANTHROPIC_BASE_URL"] == url
    providers = read(home / ".pi/agent/models.json")["providers"]
    assert providers == {"anthropic": {"baseUrl": url}, "openai": {"baseUrl": f"{url}/v1"}}


@pytest.mark.parametrize("agent", AGENTS)
def test_what_was_changed_since_stays_and_only_ours_is_taken_out(foldline, home, url, agent):
    write(home, agent)
    foldline("wrap", agent, "--gateway", url)
    name = next(iter(FILES[agent]))
    path = home / name
    text, since = SINCE.get(path.suffix, (None, {"theme": "dark"}))
    path.write_text(path.read_text() + text if text else json.dumps({**read(path), **since}))
    back = foldline("unwrap", agent)
    assert f"{path} was changed after `foldline wrap`" in back.out
    assert read(path) == {**parsed(name, FILES[agent][name]), **since}
    if text:
        assert "# mine" in path.read_text()
        assert "# since" in path.read_text()
    assert not [one for one in tree(home) if "foldline" in one]


@pytest.mark.parametrize(
    ("model", "variable", "upstream"),
    [
        ("provider: anthropic", "ANTHROPIC_BASE_URL", ""),
        ("provider: openai-api", "OPENAI_BASE_URL", ""),
        ("provider: OpenRouter", "OPENROUTER_BASE_URL", "https://openrouter.ai/api/v1"),
        ("provider: nous", "NOUS_INFERENCE_BASE_URL", "https://inference-api.nousresearch.com/v1"),
        ("provider: custom, base_url: 'http://10.0.0.2/v1'", None, "http://10.0.0.2/v1"),
        ("base_url: 'http://10.0.0.2/v1'", None, "http://10.0.0.2/v1"),
    ],
)
def test_hermes_is_led_by_the_provider_that_it_is_set_to(foldline, home, url, model, variable, upstream):  # noqa: PLR0917
    path = home / ".hermes/config.yaml"
    put(path, f"model: {{{model}, default: m}}\n")
    done = foldline("wrap", "hermes", "--gateway", url)
    assert done.code == 0
    assert ("--openai-upstream" in done.err) == bool(upstream)
    assert upstream in done.err
    if variable:
        assert read(path.with_name(".env")) == {
            variable: url if variable.startswith("ANTHROPIC") else f"{url}/v1"
        }
    else:
        assert read(path)["model"]["base_url"] == f"{url}/v1"
        path.write_text(path.read_text().replace("default: m", "default: n"))
    known = foldline("doctor", "--gateway", url, "--json").json["agents"]["hermes"]
    assert (known["gateway"], known["mcp"]) == (url, True)
    path.write_text("model: {provider: zai}\n")  # another provider by now
    assert foldline("unwrap", "hermes").code == 0
    assert list(tree(home)) == [".hermes/config.yaml"]
    assert read(path) == {"model": {"provider": "zai"}}


@pytest.mark.parametrize(
    "model", ["{}", "gpt-5.4", "{provider: zai}", "{base_url: 'https://openrouter.ai/api/v1'}"]
)
def test_hermes_with_no_provider_that_can_be_led_is_refused(foldline, home, url, model):
    path = home / ".hermes/config.yaml"
    put(path, f"model: {model}\n")
    before = tree(home)
    refused = foldline("wrap", "hermes", "--gateway", url)
    assert refused.code == 2
    assert "`hermes model`" in refused.err
    assert tree(home) == before
    assert foldline("wrap", "hermes", "--no-gateway").code == 0
    assert "mcp_servers" in read(path)


def test_comments_and_layout_of_yaml_stay(foldline, home, url):
    write(home, "hermes")
    path = home / ".hermes/config.yaml"
    foldline("wrap", "hermes", "--gateway", url)
    lines = path.read_text().splitlines()
    assert [line for line in HERMES.splitlines() if line not in lines] == []
    path.write_text("# nothing set\n")
    foldline("unwrap", "hermes")
    assert foldline("wrap", "hermes", "--no-gateway").code == 0
    assert path.read_text().startswith("# nothing set\nmcp_servers:\n")


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
    assert "`foldline serve --anthropic-upstream`" in done.err
    assert "--openai-upstream" not in done.err
    path = home / ".config/opencode/opencode.json"
    path.write_text(json.dumps({**read(path), "theme": "dark"}))
    foldline("unwrap", "opencode")
    assert read(path) == {**json.loads(OPENCODE), "theme": "dark"}


def test_an_address_that_the_shell_exports_is_told_of_since_the_settings_come_first(
    foldline, home, url, monkeypatch
):
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://me:pw@proxy.example")
    told = foldline("wrap", "claude", "--gateway", url).err
    assert "ANTHROPIC_BASE_URL is 'https://[redacted]@proxy.example' in this shell" in told
    assert "`foldline serve --anthropic-upstream`" in told
    monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
    assert "in this shell" not in foldline("wrap", "claude", "--gateway", url).err


def test_an_agent_that_is_not_installed_is_wrapped_with_a_warning(foldline, home, url, monkeypatch):
    monkeypatch.setenv("PATH", str(home / "bin"))
    done = foldline("wrap", "claude", "--gateway", url)
    assert done.code == 0
    assert "no `claude` was found on the PATH" in done.err
    install(home, "claude")
    assert foldline("wrap", "claude", "--gateway", url).err == ""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("opencode.jsonc", '{\n  // mine\n  "model": "m",\n}'),
        ("opencode.json", '{"model": "a", "model": "b"}'),
        ("opencode.json", '{"provider": "none"}'),
        ("opencode.json", "[1]"),
        ("opencode.json", '{"share": NaN}'),
        ("config.yaml", "model: {provider: custom, base_url: 'http://10.0.0.2'}\ncompression: none\n"),
        ("config.yaml", "model: {provider: anthropic}\nmodel: m\n"),
        ("config.yaml", "model: {provider: anthropic}\n\tcompression: {}\n"),
        ("config.toml", 'mcp_servers = { x = { command = "a" } }\n'),
        ("config.yaml", "- model"),
        ("config.yaml", "[]"),
    ],
)
def test_a_file_that_cannot_be_edited_safely_is_refused_by_name_and_left_as_it_is(
    foldline, home, url, name, text
):
    agent, folder = {".yaml": ("hermes", ".hermes"), ".toml": ("codex", ".codex")}.get(
        Path(name).suffix, ("opencode", ".config/opencode")
    )
    path = home / folder / name
    put(path, text)
    before = tree(home)
    refused = foldline("wrap", agent, "--gateway", url)
    assert refused.code == 2
    assert str(path) in refused.err
    assert "not changed" in refused.err
    assert tree(home) == before
    assert foldline("doctor", "--gateway", url).code == 0


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


def test_wrapping_again_where_a_file_is_refused_leaves_what_was_wrapped(foldline, home, url):
    write(home, "claude")
    foldline("wrap", "claude", "--gateway", url)
    (home / ".claude.json").write_text("// note\n" + (home / ".claude.json").read_text())
    before = tree(home)
    assert foldline("wrap", "claude", "--gateway", url).code == 2
    assert tree(home) == before


@pytest.mark.parametrize(
    ("agent", "less", "file"),
    [("claude", ("--no-mcp",), ".claude.json"), ("hermes", ("--no-gateway",), ".hermes/.env")],
)
def test_wrapping_again_with_less_puts_the_rest_back(  # noqa: PLR0917
    foldline, home, url, agent, less, file
):
    write(home, agent)
    before = (home / file).read_bytes()
    assert foldline("wrap", agent, "--gateway", url).code == 0
    assert (home / file).read_bytes() != before
    assert foldline("wrap", agent, "--gateway", url, *less).code == 0
    assert (home / file).read_bytes() == before
    assert not (home / f"{file}.foldline.json").exists()
    assert foldline("unwrap", agent).code == 0


def test_unwrapping_goes_on_behind_a_file_that_cannot_be_edited(foldline, home, url):
    write(home, "claude")
    before = (home / ".claude.json").read_bytes()
    foldline("wrap", "claude", "--gateway", url)
    settings = home / ".claude/settings.json"
    settings.write_text("// mine\n" + settings.read_text())
    done = foldline("unwrap", "claude", "--json")
    assert done.code == 2
    assert str(settings) in done.json["problems"]
    assert "settings.json cannot be edited" in done.err
    assert (home / ".claude.json").read_bytes() == before


@pytest.mark.parametrize(
    ("agent", "file", "text", "named"),
    [
        ("codex", ".codex/config.toml", 'model_provider = "azure"\n', "azure"),
        ("claude", ".claude/settings.json", '{"env": {"CLAUDE_CODE_USE_BEDROCK": "1"}}', "BEDROCK"),
        ("opencode", ".config/opencode/opencode.json", '{"model": "openrouter/x/y"}', "openrouter"),
        ("pi", ".pi/agent/settings.json", '{"defaultProvider": "groq"}', "groq"),
    ],
)
def test_an_agent_that_asks_another_provider_keeps_its_own_compaction(  # noqa: PLR0917
    foldline, home, url, agent, file, text, named
):
    put(home / file, text)
    before = tree(home)
    refused = foldline("wrap", agent, "--gateway", url)
    assert refused.code == 2
    assert named in refused.err
    assert tree(home) == before


def test_a_damaged_record_says_what_to_do_by_hand(foldline, home, url):
    write(home, "codex")
    foldline("wrap", "codex", "--gateway", url)
    record = home / ".codex/config.toml.foldline.json"
    record.write_bytes(b"")
    for words in (("unwrap", "codex"), ("wrap", "codex", "--gateway", url)):
        refused = foldline(*words)
        assert refused.code == 2
        assert "by hand" in refused.err
        assert record.name in refused.err


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
    assert "byte for byte" in foldline("unwrap", "opencode").out
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
    assert "is not the original file" in refused.err
    assert (home / ".codex/config.toml").read_text() == wrapped


def test_where_the_copy_is_gone_only_ours_is_taken_out(foldline, home, url):
    write(home, "codex")
    foldline("wrap", "codex", "--gateway", url)
    (home / ".codex/config.toml.foldline-backup").unlink()
    back = foldline("unwrap", "codex")
    assert back.code == 0
    assert "its copy is gone" in back.out
    assert read(home / ".codex/config.toml") == tomllib.loads(CODEX)
    assert not [one for one in tree(home) if "foldline" in one]


def test_what_stood_there_is_told_of_without_its_secrets(foldline, home, url):
    path = home / ".config/opencode/opencode.json"
    own = {
        "provider": {"anthropic": {"options": {"baseURL": "https://me:pw@proxy.example/v1"}}},
        "mcp": {"foldline": {"type": "local", "environment": {"API_KEY": "s3cr3t-Value9"}}},
    }
    put(path, json.dumps(own))
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
    write_transcript(home, Path.cwd(), "codex")
    monkeypatch.setenv("PATH", f"{install(home, 'codex')}{os.pathsep}{os.environ['PATH']}")
    told = foldline("doctor", "--gateway", url, "--json").json
    assert told["gateways"] == {url: True}
    codex = told["agents"]["codex"]
    found = (codex["installed"], codex["wrapped"], codex["gateway"], codex["mcp"])
    assert found == (True, False, None, False)
    assert codex["session"].endswith(".jsonl")
    assert any(line.startswith("`foldline wrap codex`") for line in told["advice"])
    alone = foldline("doctor", "--gateway", "http://127.0.0.1:9", "--json").json
    assert any(line.startswith("`foldline serve`, then `foldline wrap codex`") for line in alone["advice"])

    foldline("wrap", "codex", "--gateway", url)
    known = foldline("doctor", "--gateway", url, "--json").json["agents"]["codex"]
    assert (known["wrapped"], known["gateway"], known["mcp"]) == (True, url, True)
    text = foldline("doctor", "--gateway", url)
    assert text.code == 0
    assert re.search(r"Codex: wrapped, gateway http://\S+, MCP server; session here: ", text.out)

    foldline("wrap", "codex", "--gateway", "http://127.0.0.1:9", "--force")
    dead = foldline("doctor", "--gateway", url)
    assert dead.code == 1
    assert "`foldline unwrap codex`" in dead.out


def test_the_doctor_does_not_advise_wrapping_claude_code_that_has_the_plugin(
    foldline, home, url, monkeypatch
):
    monkeypatch.setenv("PATH", str(install(home, "claude")))
    settings = home / ".claude/settings.json"
    put(settings, '{"enabledPlugins": {"foldline@foldline": true}}')
    told = foldline("doctor", "--gateway", url)
    assert "Claude Code: not wrapped, plugin" in told.out
    assert "foldline wrap claude" not in told.out
    settings.write_text('{"enabledPlugins": {}}')
    assert "foldline wrap claude" in foldline("doctor", "--gateway", url).out


def test_the_status_line_can_be_had_alone_for_the_plugin(foldline, home):
    assert foldline("wrap", "claude", "--no-gateway", "--no-mcp").code == 0
    assert list(read(home / ".claude/settings.json")) == ["statusLine"]
    assert not (home / ".claude.json").exists()


@pytest.mark.parametrize("agent", AGENTS)
def test_without_a_home_folder_the_error_says_what_to_set(foldline, agent, monkeypatch):
    def getpwuid(_):
        raise KeyError

    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", getpwuid)
    for command in (["wrap", agent, "--force"], ["unwrap", agent]):
        refused = foldline(*command)
        assert refused.code == 2
        assert "set HOME" in refused.err


def test_the_mcp_server_is_left_to_the_plugin_of_claude_code(foldline, home):
    servers = home / ".claude.json"
    servers.write_text('{"numStartups": 3}')
    assert foldline("wrap", "claude", "--no-gateway").code == 0
    assert "foldline" in read(servers)["mcpServers"]
    settings = home / ".claude/settings.json"
    settings.write_text('{"enabledPlugins": {"foldline@foldline": true}}')  # installed later
    wrapped = foldline("wrap", "claude", "--no-gateway", "--json")
    assert wrapped.json["mcp"] is None
    assert servers.read_text() == '{"numStartups": 3}'
    assert read(settings)["enabledPlugins"] == {"foldline@foldline": True}
    assert foldline("unwrap", "claude").code == 0
    settings.write_text('{"enabledPlugins": {"foldline@foldline": false}}')
    assert foldline("wrap", "claude", "--no-gateway", "--json").json["mcp"] is not None
    assert "foldline" in read(servers)["mcpServers"]
