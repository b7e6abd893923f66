-- The full-text index: derived from the log, filled outside the append, without a copy of the text.
-- A row's rowid is the key of its entry.

CREATE VIRTUAL TABLE search USING fts5 (body, content = '', tokenize = 'unicode61 remove_diacritics 2');

ALTER TABLE sessions ADD COLUMN indexed INTEGER NOT NULL DEFAULT 0; -- up to this seq
