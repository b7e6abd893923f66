-- The full-text index: derived from the log, filled outside the append, without a copy of the text.

CREATE TABLE search (
    session_id uuid NOT NULL,
    seq bigint NOT NULL,
    words tsvector, -- see stores/postgres_index.py; NULL for a message with too many of them
    PRIMARY KEY (session_id, seq)
);

CREATE INDEX search_words ON search USING gin (words);
CREATE INDEX search_wordless ON search (session_id, seq) WHERE words IS NULL;

ALTER TABLE sessions ADD COLUMN indexed bigint NOT NULL DEFAULT 0; -- up to this seq
