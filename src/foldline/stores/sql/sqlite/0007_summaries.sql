-- The summaries of other agents are searched too: every message is indexed again at the next search.

INSERT INTO search (search) VALUES ('delete-all');

UPDATE sessions SET indexed = 0;
