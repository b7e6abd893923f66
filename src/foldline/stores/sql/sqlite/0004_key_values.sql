-- Small values with an expiry, shared by the processes that use the database: see stores/key_values.py.

CREATE TABLE key_values (
    space TEXT NOT NULL,
    key TEXT NOT NULL,
    session TEXT, -- that it belongs to: it goes with that
    value BLOB NOT NULL,
    written REAL NOT NULL, -- Unix time of the last write
    expires REAL NOT NULL,
    PRIMARY KEY (space, key)
);

CREATE INDEX key_values_by_age ON key_values (space, written);
CREATE INDEX key_values_by_expiry ON key_values (expires);
CREATE INDEX key_values_by_session ON key_values (session) WHERE session IS NOT NULL;
