-- The queries of the SQLite store, by name. `:session` is the number of a session.

-- name: session
SELECT s.no, s.leaf, s.entries, e.seq, e.segment, e.joint, e.boundary, e.messages, e.tokens, e.compactions
FROM sessions s
LEFT JOIN entries e ON e.session_no = s.no AND e.id = s.leaf
WHERE s.id = :id

-- name: info
SELECT s.id, s.title, s.created, s.updated, coalesce(e.messages, 0), s.entries,
    coalesce(e.compactions, 0), coalesce(e.tokens, 0), s.leaf, s.of_user
FROM sessions s
LEFT JOIN entries e ON e.session_no = s.no AND e.id = s.leaf
WHERE s.id = :id

-- name: newest_sessions
SELECT s.id, s.title, s.created, s.updated, coalesce(e.messages, 0), s.entries,
    coalesce(e.compactions, 0), coalesce(e.tokens, 0), s.leaf, s.of_user
FROM (
    SELECT * FROM sessions WHERE (updated, id) < (:updated, :id)
    ORDER BY updated DESC, id DESC LIMIT coalesce(:limit, -1)
) s
LEFT JOIN entries e ON e.session_no = s.no AND e.id = s.leaf
ORDER BY s.updated DESC, s.id DESC

-- name: sessions_of_user
SELECT s.id, s.title, s.created, s.updated, coalesce(e.messages, 0), s.entries,
    coalesce(e.compactions, 0), coalesce(e.tokens, 0), s.leaf, s.of_user
FROM (
    SELECT * FROM sessions WHERE of_user = :user AND of_user <> '' AND (updated, id) < (:updated, :id)
    ORDER BY updated DESC, id DESC LIMIT coalesce(:limit, -1)
) s
LEFT JOIN entries e ON e.session_no = s.no AND e.id = s.leaf
ORDER BY s.updated DESC, s.id DESC

-- name: count_sessions_of_user
SELECT count(*) FROM sessions WHERE of_user = :user AND of_user <> '' -- so that the partial index is used

-- name: idle_sessions
SELECT id FROM sessions WHERE updated < :before ORDER BY updated LIMIT :limit

-- name: ids_from
SELECT id FROM sessions WHERE id >= :first AND id < :past ORDER BY no DESC LIMIT :limit

-- name: newest_keys
SELECT no FROM sessions ORDER BY updated DESC, no DESC

-- name: leaf_seq
SELECT e.seq FROM sessions s JOIN entries e ON e.session_no = s.no AND e.id = s.leaf WHERE s.no = :session

-- name: count_sessions
SELECT count(*) FROM sessions

-- name: begin_session
INSERT INTO sessions (id, leaf, entries, title, created, updated, of_user)
VALUES (:id, :leaf, :entries, coalesce(:title, ''), :created, :updated, coalesce(:user, ''))

-- name: advance_leaf
-- Only if the session has not changed since it was read.
UPDATE sessions SET leaf = :leaf, entries = :entries, updated = :updated, title = coalesce(:title, title),
    of_user = coalesce(:user, of_user)
WHERE no = :session AND leaf IS :seen AND entries = :before

-- name: move_leaf
UPDATE sessions SET leaf = :leaf, updated = :updated WHERE no = :session AND leaf IS :seen

-- name: set_times
UPDATE sessions SET created = :created, updated = :updated WHERE no = :session

-- name: insert_entry
INSERT INTO entries (
    key, session_no, id, parent, kind, payload,
    seq, segment, joint, boundary, messages, tokens, compactions
) VALUES (
    :session * 4294967296 + :seq, :session, :id, :parent, :kind, :payload,
    :seq, :segment, :joint, :boundary, :messages, :tokens, :compactions
)

-- name: seq
SELECT seq FROM entries WHERE session_no = :session AND id = :id

-- name: seqs
SELECT id, seq FROM entries WHERE session_no = :session AND id IN (SELECT value FROM json_each(:ids))

-- name: place
SELECT seq, segment, joint, boundary, messages, tokens, compactions
FROM entries WHERE key = :session * 4294967296 + :seq

-- name: payloads_of
SELECT id, payload FROM entries WHERE session_no = :session AND id IN (SELECT value FROM json_each(:ids))

-- name: payloads
SELECT payload, kind FROM entries
WHERE key BETWEEN :session * 4294967296 + :first AND :session * 4294967296 + :last
ORDER BY key

-- name: marks
SELECT payload FROM entries
WHERE key BETWEEN :session * 4294967296 + :first AND :session * 4294967296 + :last
    AND kind <> 'said' AND kind IN (SELECT value FROM json_each(:kinds))
ORDER BY key

-- name: count_entries
SELECT count(*), coalesce(max(seq), 0) FROM entries WHERE session_no = :session

-- name: rows_to_verify
SELECT e.id, e.parent, e.kind, e.payload,
    e.seq, e.segment, e.joint, e.boundary, e.messages, e.tokens, e.compactions,
    p.seq, p.segment, p.joint, p.boundary, p.messages, p.tokens, p.compactions
FROM entries e
LEFT JOIN entries p ON p.session_no = e.session_no AND p.id = e.parent
WHERE e.key BETWEEN :session * 4294967296 + :first AND :session * 4294967296 + :last
ORDER BY e.key

-- name: delete_entries
DELETE FROM entries WHERE session_no = :session

-- name: delete_session
DELETE FROM sessions WHERE no = :session

-- name: searched
-- The entries to index.
SELECT seq, payload FROM entries
WHERE key BETWEEN :session * 4294967296 + :first AND :session * 4294967296 + :last
    AND kind IN ('said', 'compacted')
ORDER BY key

-- name: sessions_behind
-- Sessions with messages that are not indexed yet.
SELECT no FROM sessions WHERE indexed < entries AND (:session IS NULL OR no = :session)

-- name: index_message
INSERT INTO search (rowid, body) VALUES (:session * 4294967296 + :seq, :words)

-- name: set_indexed
-- Only if no other connection has indexed them meanwhile.
UPDATE sessions SET indexed = :upto WHERE no = :session AND indexed = :before AND no = :begun

-- name: indexed_upto
SELECT indexed, entries, no FROM sessions WHERE no = :session -- a number is never used again

-- name: forget_message
-- FTS5 needs the text that was indexed.
INSERT INTO search (search, rowid, body) VALUES ('delete', :session * 4294967296 + :seq, :text)

-- name: empty_index
INSERT INTO search (search) VALUES ('delete-all')

-- name: index_nothing
UPDATE sessions SET indexed = 0

-- name: optimize_index
INSERT INTO search (search) VALUES ('optimize')

-- name: matches
SELECT rowid FROM search WHERE search MATCH :expression AND rowid BETWEEN :first AND :last
ORDER BY rank, rowid DESC

-- name: searched_before
SELECT seq, payload FROM entries
WHERE key > :session * 4294967296 AND key < :session * 4294967296 + min(:before, 4294967296)
    AND kind IN ('said', 'compacted')
ORDER BY key DESC LIMIT :count

-- name: found
SELECT s.id, e.seq, e.payload FROM entries e JOIN sessions s ON s.no = e.session_no
WHERE e.key = :session * 4294967296 + :seq

-- name: count_purges
-- Numbers of sessions are not reused.
SELECT (SELECT seq FROM sqlite_sequence WHERE name = 'sessions') - (SELECT count(*) FROM sessions)

-- name: value
SELECT value FROM key_values WHERE space = :space AND key = :key AND expires > :now

-- name: value_keys
SELECT key FROM key_values WHERE space = :space AND expires > :now

-- name: space_values
SELECT key, value FROM key_values WHERE space = :space AND expires > :now

-- name: add_value
INSERT INTO key_values (space, key, session, value, written, expires)
VALUES (:space, :key, :session, :value, :now, :now + :seconds)
ON CONFLICT (space, key) DO UPDATE
SET session = excluded.session, value = excluded.value, written = excluded.written, expires = excluded.expires
WHERE key_values.expires <= :now

-- name: replace_value
UPDATE key_values SET value = :new, written = :now, expires = :now + :seconds
WHERE space = :space AND key = :key AND value = :old AND expires > :now

-- name: delete_value
DELETE FROM key_values
WHERE space = :space AND key = :key AND (value = :old OR :old IS NULL) AND expires > :now

-- name: trim_values
DELETE FROM key_values WHERE space = :space AND rowid NOT IN
    (SELECT rowid FROM key_values WHERE space = :space ORDER BY written DESC, rowid DESC LIMIT :most)

-- name: expire_values
DELETE FROM key_values WHERE expires <= :now

-- name: forget_values
DELETE FROM key_values WHERE session = :id

-- name: add_audit
INSERT INTO audit (at, action, session, record) VALUES (:at, :action, :session, :record)

-- name: audit_page
SELECT no, at, action, session, record FROM audit
WHERE (:session IS NULL OR session = :session) AND (:before IS NULL OR no < :before)
ORDER BY no DESC LIMIT :limit
