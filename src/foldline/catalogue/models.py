"""Windows and prices of known models, from a dated file (`models.json`), read at the first look-up."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec

from foldline.catalogue.info import DEFAULT_WINDOW, Found, ModelInfo
from foldline.catalogue.names import ASKED, LONG, MAKERS, PROVIDERS, TUNED, SplitName, normal, take_apart
from foldline.core.decide.price import Price
from foldline.core.log.codec import prepared
from foldline.core.measure.window import Window
from foldline.errors import InputError, PolicyError

# What may follow a known name: an effort, or a stage with or without a date. Anything else is another model:
# `gpt-5` is not `gpt-5-6`, and `grok-4` not `grok-4-fast`.
_REST: Final = re.compile(
    r"(?:[-:](?:minimal|low|medium|high|xhigh|thinking|(?:preview|exp|beta)(?:-\d\d){0,2}|0\d\d|latest))+"
)
LONG_WINDOW: Final = 1_000_000  # tokens, for names that end in `[1m]`
_TYPO: Final = 0.8  # similarity from which a word is a misspelt provider
_Tokens = Annotated[int, msgspec.Meta(ge=1)]
_Usd = Annotated[float, msgspec.Meta(ge=0)]


class Override(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A user's figures for a model; the others are those of the catalogue."""

    context: _Tokens | None = None
    input: _Tokens | None = None
    output: _Tokens | None = None
    price: dict[Literal["input", "output", "cache_read", "cache_write"], _Usd] = {}


prepared(Override)


class _Data(msgspec.Struct):
    models: dict[str, dict[str, tuple[Any, ...]]]


prepared(_Data)


@cache
def _data() -> _Data:
    raw = Path(__file__).with_name("models.json").read_bytes()
    return msgspec.json.decode(raw, type=_Data)


@cache
def _normal_names(provider: str) -> dict[str, str]:
    """Map the normal form of a provider's names to the name; of several to the shortest, which is undated."""
    names = sorted(_data().models.get(provider, ()), key=lambda name: (-len(name), name))
    return {normal(name): name for name in names}


def _row(requested: str, provider: str, name: str, found: Found) -> ModelInfo:
    context, most_input, output, price, cache_read, cache_write, price_output = _data().models[provider][name]
    window = Window(context=context, input=most_input, output=output or DEFAULT_WINDOW.output)
    cost = None
    if price is not None and price_output is not None:
        cost = Price(input=price, output=price_output, cache_read=cache_read, cache_write=cache_write)
    return ModelInfo(requested, window, cost, entry=f"{provider}:{name}", found=found)


def _providers(name: SplitName) -> tuple[str, ...]:
    return MAKERS if name.provider is None else (name.provider,)


def _longest_prefix(name: str, known: Mapping[str, Any]) -> str | None:
    fits = [key for key in known if name.startswith(key) and _REST.fullmatch(name[len(key) :])]
    return max(fits, key=len, default=None)


def _look_up(name: str) -> ModelInfo | None:
    if tuned := TUNED.match(name):
        base = _look_up(f"openai:{tuned[1]}")
        return base and msgspec.structs.replace(base, name=name, price=None, found="longest prefix")
    readings = take_apart(name)
    for reading in readings:
        for provider in _providers(reading):
            if reading.model in _data().models.get(provider, ()):
                return _row(name, provider, reading.model, "exact")
    for reading in readings:
        for provider in _providers(reading):
            if (same := _normal_names(provider).get(normal(reading.model))) is not None:
                return _row(name, provider, same, "same name")
    for reading in readings:
        prefixes = [
            (_longest_prefix(normal(reading.model), _normal_names(p)) or "", p) for p in _providers(reading)
        ]
        best, provider = max(prefixes, key=lambda pair: len(pair[0]))
        if best:
            return _row(name, provider, _normal_names(provider)[best], "longest prefix")
    return None


class Catalogue:
    """The windows and prices of models; a user's figures override those of the file.

    `overrides` maps a model's name to any of `context`, `input`, `output` (tokens) and `price` (`input`,
    `output`, `cache_read`, `cache_write`, USD for a million). A key applies to every name of the same model
    at its provider, or at any provider if it names none. Raises PolicyError for an invalid override.
    """

    def __init__(self, overrides: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        self._overrides = {name: _override(name, fields) for name, fields in (overrides or {}).items()}

    def look_up(self, model: str | None, window: int | Window | None = None) -> ModelInfo:
        """Return a model's window and price; for an unknown one (or None) the default window, `known` False.

        `window`, a `Window` or a context in tokens, overrides the model's.
        """
        name = model or ""
        info = (_look_up(name) if name else None) or ModelInfo(model or None, known=False, found="default")
        key = self._overridden(name)
        if key is not None:
            info = _overlay(info, key, self._overrides[key])
        if window is None and LONG.search(name) and not LONG.search(key or ""):
            window = LONG_WINDOW
        return info if window is None else info.within(window)

    def check(self, model: str) -> None:
        """Raise InputError for a model whose provider is misspelt, as in `opnai:gpt-5.2`."""
        provider, colon, name = model.partition(":")
        known = {*PROVIDERS, *_data().models}
        if not colon or "/" in provider or self._overridden(model) == model:
            return
        if any(name in provider.lower() for name in known):
            return
        close = get_close_matches(provider.lower(), known if _look_up(name) else ASKED, n=1, cutoff=_TYPO)
        if close:
            raise InputError(
                f"unknown provider {provider!r} in {model!r} (did you mean '{close[0]}:{name}'?); "
                f"known are {', '.join(ASKED)}, and those of the catalogue (docs/models.md)"
            )

    def _overridden(self, name: str) -> str | None:
        if name in self._overrides:
            return name
        for dated in (True, False):  # a key with a date applies to that version only
            names = {(provider, normal(model, dated=dated)) for provider, model in take_apart(name)}
            names |= {(None, model) for _, model in names}
            for key in self._overrides:
                first = take_apart(key)[0]
                if (first.provider, normal(first.model, dated=True)) in names:
                    return key
        return None


def _override(name: str, fields: Mapping[str, Any]) -> Override:
    try:
        override = msgspec.convert(dict(fields), Override)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise PolicyError(f"models.{name}: {error}") from error
    if override.price and _overlay(_look_up(name) or ModelInfo(name), name, override).price is None:
        raise PolicyError(
            f"models.{name}: price needs input and output, which the catalogue does not have for this model"
        )
    return override


def _overlay(base: ModelInfo, key: str, override: Override) -> ModelInfo:
    window = base.window
    context = override.context or window.context
    # the catalogue's input limit does not apply to another context
    input_limit = override.input or (window.input if context == window.context else None)
    window = Window(context=context, input=input_limit, output=override.output or window.output)
    known = base.known or override.context is not None
    prices = {**(msgspec.structs.asdict(base.price) if base.price else {}), **override.price}
    price = Price(**prices) if {"input", "output"} <= prices.keys() else None
    return ModelInfo(base.name, window, price, known=known, entry=key, found="override")
