-- Recall's own messages are no longer searched: every message is indexed again at the next search.

INSERT INTO search (search) VALUES ('delete-all');

UPDATE sessions SET indexed = 0;
