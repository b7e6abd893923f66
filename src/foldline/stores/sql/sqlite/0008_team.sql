-- Whose a session is, among the users of a service; and who folded, undid or deleted what, kept when that is gone.

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
