"""Session files of other agents, message lists and Foldline's own form, read as one stream of records."""

from foldline.transcripts.base import About, Folded, Heard, Record, Warned
from foldline.transcripts.own import dump, load
from foldline.transcripts.reader import read
from foldline.transcripts.sniff import FORMATS, sniff
from foldline.transcripts.source import open_transcript

__all__ = [
    "FORMATS",
    "About",
    "Folded",
    "Heard",
    "Record",
    "Warned",
    "dump",
    "load",
    "open_transcript",
    "read",
    "sniff",
]
