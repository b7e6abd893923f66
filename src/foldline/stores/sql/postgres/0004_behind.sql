-- The sessions with messages that are not indexed yet. In a separate migration, since some distributed engines
-- cannot index a column that the same transaction has added.

CREATE INDEX IF NOT EXISTS sessions_behind ON sessions (session_id) WHERE indexed < entries;
