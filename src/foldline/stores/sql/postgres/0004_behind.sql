-- The sessions of which not every message is in the full-text index. Apart from the column: some distributed
-- engines index none that was made in the same transaction.

CREATE INDEX IF NOT EXISTS sessions_behind ON sessions (session_id) WHERE indexed < entries;
