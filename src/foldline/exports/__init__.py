"""Sessions written in other tools' forms: all that was said with its boundaries, or the folded view."""

from foldline.exports.formats import OWN, formats
from foldline.exports.run import ExportWish, Told, about, export_entries, export_stored

__all__ = ["OWN", "ExportWish", "Told", "about", "export_entries", "export_stored", "formats"]
