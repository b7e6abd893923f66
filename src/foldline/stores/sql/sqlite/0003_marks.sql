-- Entries that are not messages, to find them without reading the messages between.

DROP INDEX events;
CREATE INDEX marks ON entries (key) WHERE kind <> 'said';
