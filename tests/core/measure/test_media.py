"""The page count of PDFs, and the texts that replace media."""

import base64
import zlib

import pytest

from foldline.core.log.messages import Media, Message, Text, ToolResult
from foldline.core.measure.media import PAGE_TOKENS, PAGES_MOST, media_label, media_of, media_tokens, pages


def packed(raw: bytes, mime: str = "application/pdf", name: str | None = None) -> Media:
    return Media("document", mime=mime, data=base64.b64encode(raw).decode(), name=name)


def written(count: int, leaves: int, *, between: str = "") -> bytes:
    """A PDF whose page tree declares `count` pages, with `leaves` page objects."""
    kids = " ".join(f"{n + 3} 0 R" for n in range(leaves))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R /Outlines 900 0 R >>",
        f"<< /Type /Pages {between} /Kids [{kids}] /Count {count} >>",
        *["<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] >>"] * leaves,
        "<< /Type /Outlines /Count 77 >>",
    ]
    body = "".join(f"{n} 0 obj\n{text}\nendobj\n" for n, text in enumerate(objects, 1))
    return f"%PDF-1.4\n{body}trailer << /Root 1 0 R >>\n%%EOF".encode()


def compressed(leaves: int, *, filler: int = 0) -> bytes:
    objects = " ".join(["<< /Type /Page /Parent 2 0 R >>"] * leaves) + " " * filler
    stream = zlib.compress(objects.encode())
    head = f"9 0 obj\n<< /Type /ObjStm /N {leaves} /First 10 /Filter /FlateDecode >>\nstream\r\n"
    return b"%PDF-1.5\n" + head.encode() + stream + b"\nendstream\nendobj\n%%EOF"


@pytest.mark.parametrize("leaves", [1, 7, 120])
def test_a_pdf_is_counted_by_its_pages_whatever_its_bytes(leaves):
    for raw in (written(leaves, leaves), written(leaves, leaves, between="/Resources << /Font << >> >>")):
        assert pages(packed(raw)) == leaves
        assert media_tokens(packed(raw)) == leaves * PAGE_TOKENS
        assert 1_500 <= media_tokens(packed(raw)) / leaves <= 3_000


def test_pages_in_compressed_objects_are_counted():
    assert pages(packed(compressed(35))) == 35


def test_a_page_tree_is_believed_as_far_as_the_file_could_hold_its_pages():
    assert pages(packed(written(40, 0) + b" " * 4_000)) == 40  # its pages cannot be read
    assert pages(packed(written(999_999_999, 3))) == 3
    assert pages(packed(written(999_999_999, 0))) == 0
    assert media_tokens(packed(written(999_999_999, 0))) == PAGE_TOKENS
    assert pages(packed(written(5_000, 5_000))) == PAGES_MOST


@pytest.mark.parametrize(
    "raw",
    [
        b"%PDF-1.4\n",
        b"%PDF-1.5\n<< /Type /ObjStm >>\nstream\r\nnot compressed at all",
        b"%PDF-1.5\n" + b"/Type/ObjStm stream\n" * 2_000,
        b"%PDF-1.4 /Type /Pages" * 2_000,
        b"%PDF-1.4 /Type /Pages /Count " + b"9" * 10_000,
    ],
)
def test_a_broken_pdf_is_counted_by_its_bytes(raw):
    assert pages(packed(raw)) == 0
    assert media_tokens(packed(raw)) == PAGE_TOKENS


def test_a_stream_that_unpacks_without_end_is_bounded():
    bomb = compressed(3, filler=300_000_000)
    assert len(bomb) < 1_000_000
    assert pages(packed(bomb)) == 3


def test_data_that_is_no_base64_is_counted_by_its_size():
    assert pages(Media("document", mime="application/pdf", data="JVBERé")) == 0


def test_media_are_named_where_they_stood():
    assert media_label(Media("image", mime="image/png", data="QUJD")) == "[image]"
    assert media_label(Media("image", url="https://x.test/pier.png")) == "[image: https://x.test/pier.png]"
    assert media_label(packed(written(3, 3), name="plan.pdf")) == "[PDF, 3 pages: plan.pdf]"
    assert media_label(packed(written(1, 1))) == "[PDF, 1 page]"
    assert media_label(Media("document", mime="application/pdf", url="file-id:f1")) == "[PDF: file-id:f1]"
    assert (
        media_label(Media("document", mime="text/csv", data="QUJD", name="a\nb"))
        == "[document, text/csv: a b]"
    )
    assert media_label(Media("audio", mime="audio/wav", data="QUJD")) == "[audio]"
    assert len(media_label(Media("image", name="x" * 500))) < 100


def test_media_of_results_are_of_the_message_too():
    one, two = Media("image", data="QQ=="), Media("document", data="Qg==")
    message = Message("user", (ToolResult("c", (Text("seen"), one)), two))
    assert list(media_of(message)) == [one, two]
