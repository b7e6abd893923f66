-- The summaries of other agents are searched too: every message is indexed again at the next search.

DELETE FROM search;

UPDATE sessions SET indexed = 0;
