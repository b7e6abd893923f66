"""The measures: each is a table with a description, columns, and a function that returns a system's figures.

Sizes are characters / 4, times are processor time. A view that exceeds its budget cannot be best.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

import msgspec

from foldline.bench.corpus import RULES, DirtyTalk, Messages, Talk, context, planted
from foldline.bench.decision import called_tools, compare_calls, request, sample_calls
from foldline.bench.folds import Figures, Folds, budget_of, means, plain, read_sessions, tokens
from foldline.bench.live import run_session, timed
from foldline.bench.public import BFCL, KIT, canaries, constraints, first_halves, survives
from foldline.bench.system import LiveSystem, System, clock
from foldline.catalogue import Catalogue
from foldline.core.decide.price import cost
from foldline.core.lab.retention import score, scored_message
from foldline.dialects import get
from foldline.lab.report import usages
from foldline.lab.scored_cuts import demands_at

PRICED = "claude-sonnet-4-5"  # the model whose prices are used
BUDGETS = (0.1, 0.05)  # of a fold, as shares of the session
PLACES = {"top": (0.0, 0.15), "middle": (0.42, 0.58)}  # where rules are planted
KIT_BUDGETS = (0.1, 0.2, 0.3)  # those of compaction-conformance-kit
ARGUMENT_BUDGETS = (0.2, 0.1)
CUTS = (0.5, 0.75)  # where a session is folded, as shares of it
FULL_SIZES = (1_000, 10_000, 100_000)  # messages at which a turn is timed in a full run
TURNS = 20  # timed at each size
VIEW_EVERY = 1_000  # messages, while a session grows to a size


class BenchSetup(msgspec.Struct, frozen=True):
    """The sizes of a run; `seconds` is the time limit of one measure of one system."""

    seed: int = 7
    window: int = 32_000
    messages: int = 2_000  # of a dirty log; half as many of the session for `cost`
    context: int = 100_000  # tokens of a session that is folded once
    contexts: int = 3
    sizes: tuple[int, ...] = FULL_SIZES[:2]
    sessions: tuple[str, ...] = ()
    model: str = ""  # for decisions
    seconds: float = 120.0

    def make_contexts(self) -> Iterable[Messages]:
        """Yield the sessions that are folded once."""
        return (context(self.context, self.seed + number) for number in range(self.contexts))


def measure_valid(system: System, setup: BenchSetup) -> Figures:
    """Pass a dirty log to a system."""
    result = run_session(system, DirtyTalk(setup.seed).messages(setup.messages), setup.window, setup.seconds)
    return {
        "requests": result.requests,
        "invalid": result.invalid,
        "raised": result.raised,
        "overflows": result.overflows,
        "left": result.left,
        "broken": ", ".join(rule for rule, _ in result.broken.most_common(3)),
        "note": result.note,
    }


def measure_rules(system: System, setup: BenchSetup) -> Figures:
    """Plant rules in sessions, fold them, and search for the rules word for word."""
    folds, kept = Folds(system), defaultdict[str, list[bool]](list)
    for name, texts in (("own", RULES), ("public", constraints())):
        for number, messages in enumerate(setup.make_contexts() if texts else ()):
            sample = texts[number :: setup.contexts]
            for where, place in PLACES.items():
                full = planted(messages, sample, place)
                for share in BUDGETS:
                    view = plain(folds.text(full, budget_of(full, share)))
                    kept[f"{name}_{where}_{share}"] += [plain(rule) in view for rule in sample]
    return {**means(kept), **folds.sizes}


def measure_retention(system: System, setup: BenchSetup) -> Figures:
    """Cut sessions, fold the messages before the cut, and search for the names that later messages use."""
    folds, shares = Folds(system), defaultdict[str, list[float]](list)
    decode = get("openai-chat").decode
    for messages in read_sessions(setup.sessions) if setup.sessions else setup.make_contexts():
        for needed in demands_at([scored_message(decode(message)) for message in messages], CUTS):
            past = messages[: needed.message]
            for share in BUDGETS:
                scores = score(needed.wanted, folds.text(past, budget_of(past, share)))
                for name in ("handle", "far"):
                    if (value := getattr(scores, name)) is not None:
                        shares[f"{name}_{share}"].append(value)
    cuts = len(shares.get(f"handle_{BUDGETS[0]}", ()))
    return {**means(shares), **folds.sizes, "cuts": cuts} if shares else {}


def measure_canaries(system: System, setup: BenchSetup) -> Figures:
    """Fold the kit's session, and let the kit search for its canaries."""
    del setup  # the kit's session is fixed
    folds, (messages, seeded) = Folds(system), canaries()
    kept: dict[str, list[bool]] = {}
    for share in KIT_BUDGETS:
        view = folds.text(messages, budget_of(messages, share))
        kept[f"kept_{share}"] = [survives(canary, view) for canary in seeded]
    return {**means(kept), **folds.sizes}


def measure_arguments(system: System, setup: BenchSetup) -> Figures:
    """Fold the first halves of BFCL's tasks, and search for the arguments that the second halves need."""
    del setup
    folds, kept = Folds(system), defaultdict[str, list[bool]](list)
    for half in first_halves():
        for share in ARGUMENT_BUDGETS:
            view = folds.text(half.past, budget_of(half.past, share)).replace('\\"', '"')
            kept[f"kept_{share}"] += [argument in view for argument in half.needed]
    return {**means(kept), **folds.sizes, "arguments": len(next(iter(kept.values())))}


def measure_decisions(system: System, setup: BenchSetup) -> Figures:
    """Let a model choose the next call from folded contexts, and compare it with the recorded call."""
    folds = Folds(system)
    requests = [
        (
            call,
            request(folds.view(past, budget_of(past, BUDGETS[0])), system.dialect, called_tools(messages)),
        )
        for messages in read_sessions(setup.sessions)
        for past, call in sample_calls(messages)
    ]
    return {**compare_calls(setup.model, requests), **folds.sizes} if requests else {}


def measure_cost(system: System, setup: BenchSetup) -> Figures:
    """Time turns at several sizes and one fold, and count the tokens that a session sends."""
    log = Talk(setup.seed).messages(setup.messages // 2)
    result = run_session(system, log, setup.window, setup.seconds, judged=False)
    whole = next(iter(setup.make_contexts()))
    fold = system.make(tokens(whole) // 10)
    price = Catalogue().look_up(PRICED).price
    _, cached = usages(result.tokens, result.cached, 0)
    return {
        "tokens": result.tokens / 1e6,
        "cached": result.cached / max(1, result.tokens),
        "usd": cost(cached, price) if price else None,
        "overflows": result.overflows,
        "raised": result.raised,
        "fold": timed(fold, whole),
        **time_turns(system, setup),
        "note": result.note,
    }


def time_turns(system: System, setup: BenchSetup) -> Figures:
    """Return the milliseconds of a turn at each size: a prompt, a view, a reply."""
    talk, live, length, figures = Talk(setup.seed), system.opened(setup.window), 0, Figures()
    until = clock() + setup.seconds / 3
    try:
        for messages in setup.sizes:
            while length < messages and clock() < until:
                added = min(VIEW_EVERY, messages - length)
                live.append(
                    *(message for _ in range(added // 2) for message in (talk.prompt(), talk.reply()))
                )
                live.context()
                length += added
            seconds = [_time_turn(live, talk) for _ in range(TURNS) if clock() < until]
            figures[f"turn_{messages}"] = statistics.median(seconds) * 1e3 if seconds else None
            length += 2 * len(seconds)
    finally:
        live.close()
    return figures


def _time_turn(live: LiveSystem, talk: Talk) -> float:
    prompt, reply = talk.prompt(), talk.reply()
    return timed(live.append, prompt) + timed(live.context) + timed(live.append, reply)


# ---- the tables


class Column(msgspec.Struct, frozen=True):
    """A column of a measure: its figure's key, its title, whether more or less is better, and the format."""

    key: str
    title: str
    better: Literal["more", "less", ""] = ""
    form: Literal["share", "count", "number", "text"] = "count"


class Measure(msgspec.Struct, frozen=True):
    """One table. `reads`: views are searched, so systems with a scripted summary are left out.

    `asks`: a model is called, so the user must name one.
    """

    name: str
    about: str
    columns: tuple[Column, ...]
    take: Callable[[System, BenchSetup], Figures]
    reads: bool = False
    needs: str = ""  # a package
    asks: bool = False


FOLD_COLUMNS = (
    Column("view", "view / budget", form="share"),
    Column("over", "over budget"),  # folds whose view is too large
    Column("raised", "raised"),
)


def _by_budget(title: str, key: str, budgets: tuple[float, ...] = BUDGETS) -> tuple[Column, ...]:
    return tuple(Column(f"{key}_{share}", f"{title}, {share:.0%}", "more", "share") for share in budgets)


def _places(name: str, title: str) -> tuple[Column, ...]:
    return tuple(column for where in PLACES for column in _by_budget(f"{title} {where}", f"{name}_{where}"))


MEASURES: Mapping[str, Measure] = {
    measure.name: measure
    for measure in (
        Measure(
            "valid",
            "A dirty log, message by message: interrupted and parallel calls, late and duplicate results, "
            "reused ids. Invalid: the number of views that a strict provider refuses, and why. History left: "
            "the share of user messages and results that can still be read at the end; empty if the caller "
            "keeps them.",
            (
                Column("requests", "requests"),
                Column("invalid", "invalid", "less"),
                Column("overflows", "overflows", "less"),
                Column("raised", "raised", "less"),
                Column("left", "history left", "more", "share"),
                Column("broken", "why invalid", form="text"),
            ),
            measure_valid,
        ),
        Measure(
            "rules",
            "15 rules of a user, each in a different message at the top or in the middle of a session, which "
            "is folded to a tenth or a twentieth: the share that the view contains word for word. Public: "
            "COMPINT's constraints, if its package `conpact` is installed.",
            (*_places("own", "ours,"), *_places("public", "public,"), *FOLD_COLUMNS),
            measure_rules,
            reads=True,
        ),
        Measure(
            "retention",
            "Sessions are cut at a half and at three quarters, and the part before the cut is folded to a "
            "tenth or a twentieth. Needed: of the names that later calls use and that only this part "
            "contains, the share in the view. Far: the same for names last used long before the cut.",
            (
                *_by_budget("needed", "handle"),
                *_by_budget("far", "far"),
                Column("cuts", "cuts"),
                *FOLD_COLUMNS,
            ),
            measure_retention,
            reads=True,
        ),
        Measure(
            "canaries",
            "compaction-conformance-kit: its session of about 2,000 tokens with 20 canaries, folded to its "
            "own budgets: the share of canaries that its probe finds in the view.",
            (*_by_budget("kept", "kept", KIT_BUDGETS), *FOLD_COLUMNS),
            measure_canaries,
            reads=True,
            needs=KIT,
        ),
        Measure(
            "arguments",
            "BFCL v4, multi_turn_long_context: the first halves of 20 tasks make a session, which is folded "
            "to a fifth or a tenth. Of the arguments in the second halves' gold calls that only the first "
            "halves contain: the share in the view.",
            (*_by_budget("kept", "kept", ARGUMENT_BUDGETS), Column("arguments", "arguments"), *FOLD_COLUMNS),
            measure_arguments,
            reads=True,
            needs=BFCL,
        ),
        Measure(
            "decision",
            "Your sessions, folded to a tenth before up to ten calls of their second halves: how often a "
            "model then calls the recorded tool, and with the same first argument. The row `everything` "
            "shows the model with the whole context. Refused: requests that the model's server refused.",
            (
                Column("tool", "same tool", "more", "share"),
                Column("argument", "same argument", "more", "share"),
                Column("refused", "refused"),
                Column("decisions", "decisions"),
                *FOLD_COLUMNS,
            ),
            measure_decisions,
            reads=True,
            asks=True,
        ),
        Measure(
            "cost",
            "Milliseconds of processor time for a turn in a session of that many messages; seconds of one "
            "fold; the tokens that a whole session sends, the share that a provider's cache has, and their "
            "price with claude-sonnet-4-5.",
            (
                *(Column(f"turn_{n}", f"ms a turn, {n:,}", "less", "number") for n in FULL_SIZES),
                Column("fold", "s a fold", "less", "number"),
                Column("tokens", "M tokens", form="number"),
                Column("cached", "cached", "more", "share"),
                Column("usd", "USD", "less", "number"),
                Column("overflows", "overflows"),
                Column("raised", "raised"),
            ),
            measure_cost,
        ),
    )
}
