-- The text of tools that the provider ran is searched too: every message is indexed again at the next search.

INSERT INTO search (search) VALUES ('delete-all');

UPDATE sessions SET indexed = 0;
