"""Write sessions in other tools' formats: the whole history with its boundaries, or the folded view."""

from foldline.exports.run import (
    OWN,
    ExportRequest,
    ExportResult,
    agents,
    export_entries,
    export_stored,
    formats,
    result_fields,
)

__all__ = [
    "OWN",
    "ExportRequest",
    "ExportResult",
    "agents",
    "export_entries",
    "export_stored",
    "formats",
    "result_fields",
]
