-- The text of tools that the provider ran is searched too: every message is indexed again at the next search.

DELETE FROM search;

UPDATE sessions SET indexed = 0;
