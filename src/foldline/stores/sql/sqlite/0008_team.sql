-- The user of a service who owns a session; and a log of folds, undos and deletions, which survives a purge.

ALTER TABLE sessions ADD COLUMN of_user TEXT NOT NULL DEFAULT '';
CREATE INDEX sessions_by_user ON sessions (of_user, updated, no) WHERE of_user <> '';

CREATE TABLE audit (
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    at REAL NOT NULL, -- Unix time
    action TEXT NOT NULL,
    session TEXT NOT NULL,
    record BLOB NOT NULL -- see stores/audit_log.py
);

CREATE INDEX audit_by_session ON audit (session, no);
