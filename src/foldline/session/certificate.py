"""A certified fold: the session's own model decides again, from the whole context and from the folded one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from foldline.core.compact.certify import DecidedTwice, Decision, action_of, certificate, decisions
from foldline.core.decide.policy import Policy
from foldline.core.log.entries import Compacted, Entry, Receipt
from foldline.core.view import Item, ViewState, native_items
from foldline.dialects import get
from foldline.dialects.base import decode_reply
from foldline.dialects.cache_marks import within_marks
from foldline.errors import DialectError, ProviderError
from foldline.providers.base import Call
from foldline.session.shared import Shared
from foldline.summarizers import ModelSummarizer

log = logging.getLogger("foldline")

AT_ONCE: Final = 4  # decisions that are made at the same time
_PRICE: Final = "certifying it makes "


class Certifier:
    """Makes decisions again with the model of one session; a policy's `certify` says how many."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared

    async def certified(self, entries: Sequence[Entry], boundary: Compacted, policy: Policy) -> Compacted:
        """Return a fold of these entries with a certificate in its receipt, or with why it has none."""
        if not policy.certify:
            return boundary
        model, why = self._model()
        if model is None:
            return _noted(boundary, f"not certified: {why}")
        made = await asyncio.to_thread(self._decisions, entries, boundary, policy.certify)
        if not made:
            return _noted(boundary, "not certified: no reply of the model stands behind the cut")
        spent: list[float | None] = []
        gate = asyncio.Semaphore(AT_ONCE)

        async def decide(one: Decision) -> DecidedTwice | None:
            async with gate:
                try:
                    found = [
                        action_of([await self._asked(model, items, spent)])
                        for items in (one.whole, one.folded)
                    ]
                except (ProviderError, DialectError) as error:
                    log.warning("a decision could not be made again: %s", error)
                    return None
            return DecidedTwice(*found)

        answers = await asyncio.gather(*map(decide, made))
        known = [one for one in spent if one is not None]
        found = certificate(made, answers, model.name, sum(known) if known else None)
        receipt = boundary.receipt
        price = receipt.price if found.price is None else (receipt.price or 0.0) + found.price
        receipt = msgspec.structs.replace(receipt, certificate=found, price=price)
        return _noted(msgspec.structs.replace(boundary, receipt=receipt), found.words)

    async def priced(self, entries: Sequence[Entry], boundary: Compacted, policy: Policy) -> Compacted:
        """Return a fold that is not committed, with what its certificate will cost in its notes."""
        if not policy.certify:
            return boundary
        model, _ = self._model()
        if model is None:
            return boundary
        made = await asyncio.to_thread(self._decisions, entries, boundary, policy.certify)
        overhead = self._shared.model.ask("manual").overhead_tokens
        tokens = sum(one.tokens + 2 * overhead for one in made)
        usd = (
            "" if model.price is None else f", ${tokens * model.price.input / 1_000_000:.2f} without a cache"
        )
        return _noted(boundary, f"{_PRICE}{len(made)} decisions again, twice each: {tokens:,} tokens{usd}")

    def _model(self) -> tuple[ModelSummarizer | None, str]:
        """Return who makes the decisions again: the session's own model, as it is."""
        writer, setup = self._shared.summarizer, self._shared.model.setup
        if not isinstance(writer, ModelSummarizer):
            return None, "no model is at hand"
        if setup.model and setup.model != writer.name:
            return None, f"{setup.model} cannot be asked"
        if writer.dialect != self._shared.view.dialect:
            return None, f"{writer.name} does not read messages of {self._shared.view.dialect}"
        return writer, ""

    def _decisions(self, entries: Sequence[Entry], boundary: Compacted, most: int) -> list[Decision]:
        counter = self._shared.model.setup.counter
        before = ViewState(entries, counter=counter, clean=self._shared.cursor.state.clean.of(list(entries)))
        return decisions(before, before.with_boundary(boundary), most)

    async def _asked(self, model: ModelSummarizer, items: Sequence[Item], spent: list[float | None]) -> Any:
        """Return the message with which the model answers what stood there."""
        view, tools = self._shared.view, self._shared.model.setup.tools
        messages = get(view.dialect).render(native_items(items)).messages
        call = Call(messages=within_marks(messages, view.system, tools), system=view.system, tools=tools)
        reply, usd = await model.decide(call)
        spent.append(usd)
        return decode_reply(reply.native, view.dialect)


def is_price(note: str) -> bool:
    """Whether a note says what a certificate is to cost."""
    return note.startswith(_PRICE)


def _noted(boundary: Compacted, words: str) -> Compacted:
    receipt: Receipt = boundary.receipt
    receipt = msgspec.structs.replace(receipt, notes=(*receipt.notes, words))
    return msgspec.structs.replace(boundary, receipt=receipt)
