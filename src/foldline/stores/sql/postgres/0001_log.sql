-- The log. Rows of `entries` are never updated, and deleted only with their session.
-- A session's key is a hash of its id: the rows of a session are stored together, and sessions are spread evenly.
-- Text cannot hold NUL or lone surrogates: stores/postgres_connection.py escapes both.

CREATE TABLE sessions (
    session_id uuid PRIMARY KEY,
    id text COLLATE "C" NOT NULL,
    begun double precision NOT NULL, -- Unix time of the first append, by the database's clock
    leaf text,
    entries bigint NOT NULL, -- of every branch; also the newest seq
    title text NOT NULL,
    created double precision NOT NULL, -- Unix time
    updated double precision NOT NULL
);

CREATE INDEX sessions_by_update ON sessions (updated);
CREATE INDEX sessions_by_id ON sessions (id);

CREATE TABLE entries (
    session_id uuid NOT NULL,
    seq bigint NOT NULL, -- from 1
    id text NOT NULL,
    kind text NOT NULL,
    -- The place of the entry, and totals of the path up to it: see `Place` in stores/tree.py.
    segment bigint NOT NULL,
    joint bigint,
    boundary text,
    messages bigint NOT NULL,
    tokens bigint NOT NULL,
    compactions bigint NOT NULL,
    pieces bigint NOT NULL, -- the number of rows in `pieces` that continue the payload
    payload bytea NOT NULL, -- the entry: see stores/rows.py
    PRIMARY KEY (session_id, seq),
    UNIQUE (session_id, id)
);

-- Entries that are not messages, to find them without reading the messages between.
CREATE INDEX marks ON entries (session_id, seq) WHERE kind <> 'said';

-- The parts of payloads that are too large for one row.
CREATE TABLE pieces (
    session_id uuid NOT NULL,
    seq bigint NOT NULL,
    piece bigint NOT NULL, -- from 1
    payload bytea NOT NULL,
    PRIMARY KEY (session_id, seq, piece)
);

-- The log with whole payloads.
CREATE VIEW log AS
SELECT e.session_id, e.seq, e.id, e.kind, e.segment, e.joint, e.boundary, e.messages, e.tokens, e.compactions,
    CASE WHEN e.pieces = 0 THEN e.payload ELSE e.payload || (
        SELECT string_agg(p.payload, CAST('' AS bytea) ORDER BY p.piece)
        FROM pieces p WHERE p.session_id = e.session_id AND p.seq = e.seq
    ) END AS payload
FROM entries e;
