-- Small values with an expiry, shared by the processes that use the database: see stores/key_values.py.

CREATE TABLE key_values (
    space text NOT NULL,
    key text NOT NULL,
    session text, -- to which it belongs, and with which it is deleted
    value bytea NOT NULL,
    written double precision NOT NULL, -- Unix time of the last write
    expires double precision NOT NULL,
    PRIMARY KEY (space, key)
);

CREATE INDEX key_values_by_age ON key_values (space, written);
CREATE INDEX key_values_by_expiry ON key_values (expires);
CREATE INDEX key_values_by_session ON key_values (session) WHERE session IS NOT NULL;
