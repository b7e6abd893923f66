-- What recall says of itself is not searched any more: every message is indexed again at the next search.

DELETE FROM search;

UPDATE sessions SET indexed = 0;
