"""Certify a fold: the session's model repeats decisions with the whole context and with the folded one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import reduce
from typing import Any, Final

import msgspec

from foldline.core.compact.certify import DecidedTwice, Decision, action_of, certificate, decisions
from foldline.core.decide.policy import Policy
from foldline.core.decide.price import added
from foldline.core.log.entries import Compacted, Entry, Receipt
from foldline.core.log.messages import Usage
from foldline.core.view import ViewState
from foldline.core.view_items import Item, native_items
from foldline.dialects import get
from foldline.dialects.base import decode_reply
from foldline.dialects.cache_marks import within_marks
from foldline.errors import DialectError, ProviderError
from foldline.providers.base import Call
from foldline.session.shared import Shared
from foldline.summarizers import ModelSummarizer

log = logging.getLogger("foldline")

CONCURRENT: Final = 4  # decisions at a time
_PRICE: Final = "certifying it makes "


class Certifier:
    """Repeats decisions with the model of one session; the policy's `certify` says how many."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared

    async def certify(self, entries: Sequence[Entry], boundary: Compacted, policy: Policy) -> Compacted:
        """Return a fold of these entries with a certificate in its receipt, or a note why there is none."""
        if not policy.certify:
            return boundary
        model, why = self._model()
        if model is None:
            return _with_note(boundary, f"not certified: {why}")
        replayed = await asyncio.to_thread(self._decisions, entries, boundary, policy.certify)
        if not replayed:
            return _with_note(boundary, "not certified: no reply of the model stands behind the cut")
        spent: list[tuple[Usage | None, float | None]] = []
        gate = asyncio.Semaphore(CONCURRENT)

        async def decide(decision: Decision) -> DecidedTwice | None:
            async with gate:
                try:
                    actions = [
                        action_of([await self._decide(model, items, spent)])
                        for items in (decision.whole, decision.folded)
                    ]
                except (ProviderError, DialectError) as error:
                    log.warning("a decision could not be replayed again: %s", error)
                    return None
            return DecidedTwice(*actions)

        answers = await asyncio.gather(*map(decide, replayed))
        prices = [usd for _, usd in spent if usd is not None]
        result = certificate(replayed, answers, model.name, sum(prices) if prices else None)
        receipt = boundary.receipt
        price = receipt.price if result.price is None else (receipt.price or 0.0) + result.price
        usage = reduce(added, (usage for usage, _ in spent), receipt.usage)
        receipt = msgspec.structs.replace(receipt, certificate=result, usage=usage, price=price)
        return _with_note(msgspec.structs.replace(boundary, receipt=receipt), result.words)

    async def with_estimate(self, entries: Sequence[Entry], boundary: Compacted, policy: Policy) -> Compacted:
        """Return an uncommitted fold with a note of what its certificate will cost."""
        if not policy.certify:
            return boundary
        model, _ = self._model()
        if model is None:
            return boundary
        replayed = await asyncio.to_thread(self._decisions, entries, boundary, policy.certify)
        overhead = self._shared.model.ask("manual").overhead_tokens
        tokens = sum(decision.tokens + 2 * overhead for decision in replayed)
        usd = (
            "" if model.price is None else f", ${tokens * model.price.input / 1_000_000:.2f} without a cache"
        )
        return _with_note(
            boundary, f"{_PRICE}{len(replayed)} decisions again, twice each: {tokens:,} tokens{usd}"
        )

    def _model(self) -> tuple[ModelSummarizer | None, str]:
        """Return the session's model, or None and why it cannot repeat decisions."""
        writer, setup = self._shared.summarizer, self._shared.model.setup
        if not isinstance(writer, ModelSummarizer):
            return None, "no model is configured"
        if setup.model and setup.model != writer.name:
            return None, f"{setup.model} cannot be asked"
        if writer.dialect != self._shared.view.dialect:
            return None, f"{writer.name} does not read messages of {self._shared.view.dialect}"
        return writer, ""

    def _decisions(self, entries: Sequence[Entry], boundary: Compacted, most: int) -> list[Decision]:
        counter = self._shared.model.setup.counter
        before = ViewState(entries, counter=counter, clean=self._shared.cursor.state.clean.of(list(entries)))
        return decisions(before, before.with_boundary(boundary), most)

    async def _decide(
        self, model: ModelSummarizer, items: Sequence[Item], spent: list[tuple[Usage | None, float | None]]
    ) -> Any:
        """Return the model's reply to these items."""
        view, tools = self._shared.view, self._shared.model.setup.tools
        messages = get(view.dialect).render(native_items(items)).messages
        call = Call(messages=within_marks(messages, view.system, tools), system=view.system, tools=tools)
        reply, usd = await model.decide(call)
        spent.append((reply.usage, usd))
        return decode_reply(reply.native, view.dialect)


def is_price(note: str) -> bool:
    """Whether a note is the cost estimate of a certificate."""
    return note.startswith(_PRICE)


def _with_note(boundary: Compacted, words: str) -> Compacted:
    receipt: Receipt = boundary.receipt
    receipt = msgspec.structs.replace(receipt, notes=(*receipt.notes, words))
    return msgspec.structs.replace(boundary, receipt=receipt)
