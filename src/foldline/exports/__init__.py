"""Write sessions in other tools' formats: the whole history with its boundaries, or the folded view."""

from foldline.exports.formats import OWN, agents, formats
from foldline.exports.run import ExportResult, ExportWish, export_entries, export_stored, result_fields

__all__ = [
    "OWN",
    "ExportResult",
    "ExportWish",
    "agents",
    "export_entries",
    "export_stored",
    "formats",
    "result_fields",
]
