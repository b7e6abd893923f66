-- What recall says of itself is not searched any more: every message is indexed again at the next search.

INSERT INTO search (search) VALUES ('delete-all');

UPDATE sessions SET indexed = 0;
