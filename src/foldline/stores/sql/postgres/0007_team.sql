-- The user of a service who owns a session; and a log of folds, undos and deletions, which survives a purge.

ALTER TABLE sessions ADD COLUMN of_user text NOT NULL DEFAULT '';
CREATE INDEX sessions_by_user ON sessions (of_user, updated) WHERE of_user <> '';

CREATE TABLE audit (
    no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at double precision NOT NULL, -- Unix time
    action text NOT NULL,
    session text NOT NULL,
    record bytea NOT NULL -- see stores/audit_log.py
);

CREATE INDEX audit_by_session ON audit (session, no);
