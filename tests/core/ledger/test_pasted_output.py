from __future__ import annotations

import pytest

from foldline.core.ledger.text.pasted import typed

RUN = """Uploading bundle to: /var/cache/bundles
=== Step 1: Resolve ===
✓ 14 packages resolved
  "kiosk": "berlin-4",
  "retries": 3
state/kiosk-berlin-4.json
Uploaded at 10:22:31
=== Step 2: Verify ===
checksum: 9f86d081884c7d659a2feaa0c55ad015"""


def test_a_programs_output_is_nobodys_words():
    assert typed(RUN).strip() == ""


@pytest.mark.parametrize(
    "before", ["It still says three retries, and it should be five.", "no, go back to the second bundle"]
)
def test_what_is_typed_before_output_stays(before):
    assert typed(f"{before}\n{RUN}").strip() == before


def test_a_sentence_behind_output_stays():
    assert (
        typed(f"{RUN}\nwhy does it verify the wrong bundle now").strip()
        == "why does it verify the wrong bundle now"
    )


@pytest.mark.parametrize(
    "text",
    [
        "Please do these:\n- Create the kiosk page.\n- Delete the old tests.\n- Rename Rates to Prices.\n- Copy the readme.\n- Never push.",
        "Create the page\nDelete the old tests\nRename the module\nCopy the readme\nRun it\nTell me",
        "The plan:\n1. read the rates\n2. round them, as before\n3. write them\n\nUse tabs. Never call the bank.",
    ],
)
def test_a_list_of_orders_is_typed(text):
    assert typed(text) == text


def test_words_between_a_few_lines_of_data_stay():
    text = 'Here is what I get:\n{\n  "a": 1,\n}\nand the other one says\n[\n  2,\n]\nNever round the second one.\nPlease compare both runs.\nThen tell me which one is right.\nI think it is the first of them.\nThe bank says so, too, in its mail.\nBut nobody is sure about it.'
    assert "Never round the second one." in typed(text)


def test_a_sentence_among_frames_of_a_stack_is_the_programs():
    frames = "\n".join(f"    at drawKiosk{number} (kiosk-7f3a.js:{number}0:13)" for number in range(9))
    text = f"The page is broken.\nWarning: each kiosk needs a name.\n{frames}\nNames should be unique so that kiosks keep their place."
    assert "The page is broken." in typed(text)
    text = f"{frames}\nNames must be unique so that kiosks keep their place.\n{frames}"
    assert "Names" not in typed(text)
