import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.checkpoint.talk import assistant, entries, result, user

from foldline.core.checkpoint.language import language_of, users_language

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
    assert users_language(talk) == "German"
    assert users_language(talk[1:]) == ""


@given(st.text())
def test_any_text_has_a_language_or_none(text):
    assert isinstance(language_of(text), str)
