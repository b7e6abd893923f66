-- The last updated sessions, without sorting all of them.

CREATE INDEX sessions_by_update ON sessions (updated, no);
