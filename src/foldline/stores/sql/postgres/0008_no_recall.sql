-- Recall's own messages are no longer searched: every message is indexed again at the next search.

DELETE FROM search;

UPDATE sessions SET indexed = 0;
