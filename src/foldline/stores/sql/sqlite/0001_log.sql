-- The log. Rows of `entries` are never updated, and deleted only with their session.

CREATE TABLE sessions (
    no INTEGER PRIMARY KEY AUTOINCREMENT, -- never used again after a purge
    id TEXT NOT NULL UNIQUE,
    leaf TEXT,
    entries INTEGER NOT NULL, -- of every branch; also the newest seq
    title TEXT NOT NULL,
    created REAL NOT NULL, -- Unix time
    updated REAL NOT NULL
);

CREATE TABLE entries (
    key INTEGER PRIMARY KEY, -- keeps a session's entries side by side, in order
    session_no INTEGER NOT NULL REFERENCES sessions (no),
    seq INTEGER NOT NULL, -- from 1
    id TEXT NOT NULL,
    parent TEXT,
    kind TEXT NOT NULL,
    -- What lies on the path up to and with this entry: see `Place` in stores/tree.py.
    segment INTEGER NOT NULL,
    joint INTEGER,
    boundary TEXT,
    messages INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    compactions INTEGER NOT NULL,
    payload BLOB NOT NULL, -- the entry: see stores/rows.py
    UNIQUE (session_no, id),
    CHECK (key = session_no * 4294967296 + seq)
);

CREATE INDEX events ON entries (key) WHERE kind IN ('compacted', 'lifted');
