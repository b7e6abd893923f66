"""Each rule and each veto by an example of its own; the labelled set is in test_constraint_sentences.py."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from foldline.core.ledger.text.changes import LIFTS, can_lift
from foldline.core.ledger.text.cues import RULES, VETOES, can_match, rule_of

FOUND = {
    "never": "Never push to main directly.",
    "always": "Always run the tests before you push.",
    "prohibition": "Fix the login test, but do not change the schema.",
    "our custom": "We don't use default exports here.",
    "i do not want": "I don't want any generated code in the repository.",
    "must": "The API must stay backwards compatible.",
    "may not": "Tabs are forbidden.",
    "should not": "Error messages shouldn't contain stack traces.",
    "every": "All public functions need type hints.",
    "universal": "All amounts are integers.",
    "limit": "A page can show at most 50 rows.",
    "convention": "Write migration names in lower case.",
    "only": "Only use the standard library.",
    "not that but this": "Use pnpm, not npm.",
    "use for": "Use single quotes for strings.",
    "make sure": "Make sure that no test depends on the network.",
    "no such thing": "No network access in tests.",
    "keep": "Keep functions under 40 lines.",
    "avoid": "Avoid mocking the database.",
    "prefer": "I prefer composition over inheritance.",
    "stick to": "Leave the legacy folder alone.",
    "standing": "Under no circumstances change the schema.",
    "remember": "Remember that we support Python 3.9.",
    "permission": "Ask me before deleting anything.",
    "whenever": "Whenever you add a flag, document it in the README.",
    "manner": "Answer me in German.",
    "nothing": "Everything goes through the queue and nothing talks to the database directly.",
    "de never": "Schreib niemals in die Datenbank.",
    "de always": "Bitte immer auf Deutsch antworten.",
    "de must not": "Die Schnittstelle darf sich nicht ändern.",
    "de only": "Verwende ausschließlich die vorhandenen Funktionen.",
    "de from now on": "Ab jetzt schreibst du die Kommentare auf Deutsch.",
    "fr never": "Ne modifie jamais ce dossier.",
    "fr always": "Réponds toujours en français.",
    "es never": "Nunca borres los archivos.",
    "es always": "Usa siempre comillas simples.",
    "zh": "不要修改这个目录下的文件。",
    "ja": "変数名は必ず英語にしてください。",
    "ko": "이 파일은 절대 수정하지 마세요.",
    "ru": "Никогда не меняй эту схему.",
    "pt, it": "Nunca apague os arquivos, sempre pergunte antes.",
}

VETOED = {
    "question": "Should we always use UTC here?",
    "request": "Can you make sure that no test fails",
    "moment": "Stop, not staging!",
    "reports": "No work here.",
    "not for good": "Don't commit yet.",
    "log or code": "main.go:12: must not be nil",
    "describes": "It always crashes when I never expected it.",
    "opinion": "I guess we only use tabs there.",
    "settled": "never mind, keep the flag",
}


@pytest.mark.parametrize(("rule", "sentence"), FOUND.items())
def test_rules(rule: str, sentence: str) -> None:
    assert rule_of(sentence) is not None
    assert dict(RULES)[rule].search(sentence.lower())


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        ("nothing", "Nothing outside of gateway.ts may talk to the payment provider."),
        ("whenever", "When you change a prompt template, also bump PROMPT_VERSION."),
    ],
)
def test_file_names_and_rarer_verbs_do_not_hide_a_rule(rule: str, sentence: str) -> None:
    assert rule_of(sentence) == rule


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        ("not that but this", "All amounts are in integer cents, never floats."),
        ("universal", "Tests go in tests/, not in src/."),
        ("use for", "Use snake_case everywhere."),
        ("only", "Only Alice may approve refunds."),
        ("universal", "Refunds above 100 EUR need my approval."),
        ("stick to", "Stay away from the legacy/ folder."),
        ("fr never", "Ne jamais supprimer la table clients."),
    ],
)
def test_ordinary_rules_that_somebody_missed(rule: str, sentence: str) -> None:
    assert rule_of(sentence) == rule


@pytest.mark.parametrize(
    "sentence",
    [
        "Use tabs.",
        "Reply in Danish.",
        "Only admins can see salaries.",
        "Can you make sure that we never log passwords?",
        "Invoices stay in the archive for ten years.",
        "Nobody but Alice merges.",
        "One class per file.",
        "Drafts: no tables.",
        "Hardly any comments, and no jokes.",
        "Sign every letter with my name.",
        "Orders from abroad need to be checked by hand.",
        "Nur Redakteure dürfen Artikel löschen.",
        "Schreib die Kommentare auf Englisch.",
        "Pas d'images dans les courriels.",
        "Solo los editores pueden publicar.",
        "只有编辑可以发布文章。",
        "編集者だけが公開できます。",
    ],
)
def test_rules_without_a_word_such_as_never(sentence: str) -> None:
    assert rule_of(sentence) is not None


@pytest.mark.parametrize(
    "sentence",
    [
        "Set the retries to 10.",
        "Raise the burst to 20.",
        "Use option 2.",
        "Use the second file.",
        "ok, i think the table doesn't adhere to the rule that no line must be wider than the screen.",
        "I opened the page and got an error, that should never happen.",
        "Can you find out why it never ends?",
        "TypeError: id must be a string",
        "All users were logged out.",
        "The report stays in the list after I delete it.",
        "Only the last row is wrong.",
        "I have the log, no errors.",
        "When you are done, push the branch.",
        "Always the same message, I give up.",
    ],
)
def test_orders_reports_and_errors_are_no_rules(sentence: str) -> None:
    assert rule_of(sentence) is None


@pytest.mark.parametrize(
    "sentence",
    [
        "Only Alice saw the page.",
        "The parser reads all of it but not the head.",
        "Go into the folder and look at it.",
        "This needs my attention today.",
        "I stay out of the way of the loop",
        "All good, not a problem.",
        "All right, not what I wanted.",
        "The click goes to the parent, not the child.",
        "Use case is everywhere.",
        "Only two tests may have failed.",
        "The page requires my permission to use the camera and crashes.",
    ],
)
def test_sentences_that_only_look_like_them(sentence: str) -> None:
    assert rule_of(sentence) is None


@pytest.mark.parametrize(("veto", "sentence"), VETOED.items())
def test_vetoes(veto: str, sentence: str) -> None:
    assert rule_of(sentence) is None
    assert dict(VETOES)[veto].search(sentence)


def test_every_rule_and_veto_has_an_example() -> None:
    assert FOUND.keys() == dict(RULES).keys()
    assert VETOED.keys() == dict(VETOES).keys()


@pytest.mark.parametrize(
    "sentence",
    [
        "The log says `never` somewhere in it.",
        'It prints "always use tabs" on start.',
        "Update the docs and make sure they are not empty.",
        "Never " + "x" * 500,
        "Never",
        "",
    ],
)
def test_mentioned_words_single_tasks_and_data_are_no_constraints(sentence: str) -> None:
    assert rule_of(sentence) is None


def test_a_rule_that_needs_a_word_matches_nothing_without_it() -> None:
    """The look before a rule is a shortcut: for every sentence that the tests know both ways agree."""
    files = (Path(__file__), Path(__file__).with_name("test_constraint_changes.py"))
    sentences = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    for file in sorted((Path(__file__).parents[2] / "data").glob("constraint_sentences*.jsonl")):
        rows = map(json.loads, file.read_text(encoding="utf-8").splitlines())
        sentences += [row["text"] for row in rows if "text" in row]
    assert len(sentences) > 800
    for sentence in sentences:
        lowered = sentence.lower()
        for name, pattern in RULES:
            if pattern.search(lowered):
                assert can_match(name, lowered), (name, sentence)
        if LIFTS.search(lowered):
            assert can_lift(lowered), sentence


@pytest.mark.parametrize(
    "sentence",
    [
        "Überschreibe nie eine Rechnung.",
        "Bitte starte nie den Dienst neu.",
        "Rühr den Ordner ablage nicht an.",
        "Schalte bitte den Server nicht ab.",
        "Verschicke bitte nie eine Mail.",
    ],
)
def test_german_orders_that_forbid_are_rules(sentence: str) -> None:
    assert rule_of(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "Funktioniert nie.",
        "Habe nie davon gehört.",
        "Lampe geht nicht an.",
        "Server springen nicht an.",
        "Der Dienst fährt nicht hoch.",
        "Ich kam nie dazu.",
        "You cannot always rely on the meter.",
    ],
)
def test_reports_that_look_like_them_are_none(sentence: str) -> None:
    assert not rule_of(sentence)
