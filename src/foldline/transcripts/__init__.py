"""Read session files of other agents, message lists and Foldline's own format as one stream of records."""

from foldline.transcripts.foldline_log import dump, header_line, load
from foldline.transcripts.reader import FORMATS, format_of, read
from foldline.transcripts.records import CompactionRecord, FactRecord, MessageRecord, Record, WarningRecord
from foldline.transcripts.sniff import sniff
from foldline.transcripts.source import open_transcript

__all__ = [
    "FORMATS",
    "CompactionRecord",
    "FactRecord",
    "MessageRecord",
    "Record",
    "WarningRecord",
    "dump",
    "format_of",
    "header_line",
    "load",
    "open_transcript",
    "read",
    "sniff",
]
