import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.checkpoint.talk import assistant, entries, result, user

from foldline.core.checkpoint.check import Accepted, Rejected, check
from foldline.core.checkpoint.language import language_of, spoken_by_user
from foldline.core.checkpoint.request import SummaryReply, SummaryRequest
from foldline.core.ledger.facts.kinds import Item, Ledger
from foldline.core.measure.tokens import OFFLINE

SAYS = {
    "English": "Please look at the store and tell me what you find there; it should not be changed by this.",
    "German": "Bitte sieh dir den Speicher an und sag mir, was du dort findest; er soll nicht geändert werden.",
    "French": "Regarde le magasin et dis moi ce que tu trouves dans les fichiers, il ne doit pas être changé par toi.",
    "Spanish": "Mira el almacén y dime lo que hay en los archivos, no se debe cambiar por nadie, es muy importante.",
    "Italian": "Guarda il deposito e dimmi cosa c'è nel file, non deve mai essere cambiato, è molto importante per gli altri.",
    "Portuguese": "Olhe o armazém e diga o que há nos arquivos, não deve ser mudado por você, é uma coisa para os outros.",
    "Dutch": "Kijk naar het bestand en zeg wat je er in vindt; het moet niet worden veranderd door dit en dat is belangrijk.",
    "Japanese": "ログインページを直してください。セッションが再起動後も残るようにしたいです。",
    "Chinese": "请修复登录页面，使会话在服务器重启后仍然有效，并告诉我你在存储中发现了什么。",
    "Korean": "로그인 페이지를 고쳐 주세요. 서버를 다시 시작해도 세션이 유지되어야 합니다. 감사합니다.",
    "Russian": "Почини страницу входа, чтобы сессии переживали перезапуск сервера.",
}


@pytest.mark.parametrize("language", SAYS)
def test_a_language_is_known_by_its_letters_or_its_commonest_words(language):
    assert language_of(SAYS[language]) == language


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ok",
        "Go on.",
        "def login(): return session",
        "`the and of to is are was were`",
        f"{SAYS['German']} {SAYS['English']}",
    ],
)
def test_what_is_short_or_mixed_or_code_has_none(text):
    assert language_of(text) == ""


def test_headings_paths_and_links_do_not_count():
    around = "# The goal of this is to be the one that it was\n/the/and/of/to.py https://the.and.of/to\n"
    assert language_of(around + SAYS["German"]) == "German"
    assert language_of(around) == ""


def test_only_what_the_user_wrote_says_which_language_that_is():
    talk = entries(
        user(SAYS["German"]),
        assistant(SAYS["English"] * 3),
        result("c1", SAYS["English"] * 9),
        user(SAYS["English"], injected=True),
        user(f"<system-reminder>{SAYS['English']}</system-reminder>"),
    )
    spoken = spoken_by_user(talk)
    assert (spoken.main, spoken.every) == ("German", ("German",))
    assert spoken_by_user(talk[1:]).every == ()


LOG = """Traceback (most recent call last):
  File "/srv/app/orders.py", line 31, in load
OrderError: the order was not found in the store, and it must be there before this can be shipped
warning: there is no handler for that event; please see what the queue has to say of it
"""
FIXED = {  # how users of five languages ask, between logs that they paste
    "Japanese": ("直して\n" + LOG * 9, "お願いします", LOG * 9, "テストも追加して、結果を教えてください。"),
    "Russian": ("почини это:\n" + LOG * 9, "да", "и тесты тоже, пожалуйста", LOG * 9),
    "German": (
        "Das ist der Fehler, bitte sieh nach:\n" + LOG * 9,
        "Ja, mach das bitte auch für die anderen.",
        "Wie ist das mit dem Test?\n" + LOG,
    ),
    "Spanish": (
        "Este es el error que sale en el servidor:\n" + LOG * 9,
        "Sí, pero no en la rama principal, por favor.",
        "¿Y qué hay de los pedidos que no están en la base?",
    ),
    "Korean": ("고쳐 주세요\n" + LOG * 9, "네", "테스트도 추가해 주세요", LOG),
}


def judged(talk, written: str, **more):
    """Whether a summary in that language is accepted for this talk."""
    folded = entries(*talk, tokens=5_000)
    asked = SummaryRequest("first", "", "", folded, None, more.pop("ledger", Ledger()), 2_000, **more)
    reply = SummaryReply("## Goal\n" + SAYS[written] * 4, "model:test")
    return check(reply, asked, ["Goal"], counter=OFFLINE)


@pytest.mark.parametrize("language", FIXED)
def test_a_summary_in_the_users_language_is_kept_whatever_was_pasted_around_it(language):
    talk = [message for text in FIXED[language] for message in (user(text), assistant(SAYS["English"]))]
    assert isinstance(judged(talk, language), Accepted)
    assert isinstance(judged(talk, "English"), Accepted), "pasted or not, it stands in the user's messages"
    refused = judged(talk, "Chinese" if language != "Spanish" else "Dutch")
    assert isinstance(refused, Rejected)
    assert refused.why == "language"


@pytest.mark.parametrize("language", FIXED)
def test_the_main_language_is_that_of_most_messages_not_of_most_words(language):
    assert spoken_by_user(entries(*map(user, FIXED[language]))).main in (language, "")
    typed = [text.split("\n")[0] for text in FIXED[language] if not text.startswith("Traceback")]
    assert spoken_by_user(entries(*map(user, [*FIXED[language], *typed, *typed]))).main == language


@pytest.mark.parametrize("language", ["English", "German", "French", "Spanish", "Japanese", "Russian"])
def test_a_summary_in_a_language_that_nobody_wrote_is_rejected(language):
    talk = [user(SAYS[language]), assistant("ok"), user(SAYS[language])]
    for other in SAYS:
        taken = judged(talk, other)
        assert isinstance(taken, Accepted if other == language else Rejected), other


def test_two_languages_of_the_user_are_both_the_users():
    talk = [user(SAYS["French"]), assistant("ok"), user(SAYS["English"])]
    assert spoken_by_user(entries(*talk)).main == ""
    assert isinstance(judged(talk, "French"), Accepted)
    assert isinstance(judged(talk, "English"), Accepted)
    refused = judged(talk, "German")
    assert isinstance(refused, Rejected)
    assert "where the user writes in English and French" in refused.words


def test_what_the_user_wrote_before_an_earlier_fold_counts():
    talk = [user(LOG * 3), assistant("ok")]
    assert isinstance(judged(talk, "Japanese"), Rejected)
    before = Ledger(items=(Item("user", SAYS["Japanese"], "e1"),))
    assert isinstance(judged(talk, "Japanese", ledger=before), Accepted)


def test_a_language_that_the_user_asked_for_by_name_is_kept():
    talk = [user(SAYS["English"])]
    assert isinstance(judged(talk, "Dutch", instructions="Write it in Dutch, please."), Accepted)


def test_a_session_with_nothing_to_go_by_rejects_no_language():
    for language in SAYS:
        assert isinstance(judged([user("ok"), user("`ls -la`"), user("src/app.py")], language), Accepted)


@given(st.text())
def test_any_text_has_a_language_or_none(text):
    assert isinstance(language_of(text), str)
