-- The queries of the PostgreSQL store, by name. `:session` is the key of a session,
-- `:key` the same for a session known by its id.

-- name: session
SELECT s.session_id, s.leaf, s.entries, e.seq, e.segment, e.joint, e.boundary, e.messages, e.tokens, e.compactions
FROM sessions s
LEFT JOIN entries e ON e.session_id = s.session_id AND e.id = s.leaf
WHERE s.session_id = :key AND s.id = :id

-- name: info
SELECT s.id, s.title, s.created, s.updated, coalesce(e.messages, 0), s.entries,
    coalesce(e.compactions, 0), coalesce(e.tokens, 0), s.leaf, s.of_user
FROM sessions s
LEFT JOIN entries e ON e.session_id = s.session_id AND e.id = s.leaf
WHERE s.session_id = :key AND s.id = :id

-- name: newest_sessions
SELECT s.id, s.title, s.created, s.updated, coalesce(e.messages, 0), s.entries,
    coalesce(e.compactions, 0), coalesce(e.tokens, 0), s.leaf, s.of_user
FROM (
    SELECT * FROM sessions WHERE (updated, id) < (:updated, :id)
    ORDER BY updated DESC, id DESC LIMIT CAST(:limit AS bigint)
) s
LEFT JOIN entries e ON e.session_id = s.session_id AND e.id = s.leaf
ORDER BY s.updated DESC, s.id DESC

-- name: sessions_of_user
SELECT s.id, s.title, s.created, s.updated, coalesce(e.messages, 0), s.entries,
    coalesce(e.compactions, 0), coalesce(e.tokens, 0), s.leaf, s.of_user
FROM (
    SELECT * FROM sessions WHERE of_user = :user AND of_user <> '' AND (updated, id) < (:updated, :id)
    ORDER BY updated DESC, id DESC LIMIT CAST(:limit AS bigint)
) s
LEFT JOIN entries e ON e.session_id = s.session_id AND e.id = s.leaf
ORDER BY s.updated DESC, s.id DESC

-- name: count_sessions_of_user
SELECT count(*) FROM sessions WHERE of_user = :user AND of_user <> '' -- so that the partial index is used

-- name: idle_sessions
SELECT id FROM sessions WHERE updated < :before ORDER BY updated LIMIT :limit

-- name: ids_from
SELECT id FROM sessions WHERE id >= :first AND id < :past ORDER BY begun DESC, session_id LIMIT :limit

-- name: newest_keys
SELECT session_id FROM sessions ORDER BY updated DESC, begun DESC, session_id

-- name: leaf_seq
SELECT e.seq FROM sessions s JOIN entries e ON e.session_id = s.session_id AND e.id = s.leaf
WHERE s.session_id = :session

-- name: count_sessions
SELECT count(*) FROM sessions

-- name: begin_session
INSERT INTO sessions (session_id, id, begun, leaf, entries, title, created, updated, of_user)
VALUES (
    :key, :id, extract(epoch FROM clock_timestamp()), :leaf, :entries, coalesce(:title, ''), :created, :updated, coalesce(:user, '')
)
ON CONFLICT DO NOTHING

-- name: advance_leaf
-- Only if the session has not changed since it was read.
UPDATE sessions SET leaf = :leaf, entries = :entries, updated = :updated, title = coalesce(:title, title),
    of_user = coalesce(:user, of_user)
WHERE session_id = :session AND leaf IS NOT DISTINCT FROM :seen AND entries = :before

-- name: move_leaf
UPDATE sessions SET leaf = :leaf, updated = :updated
WHERE session_id = :session AND leaf IS NOT DISTINCT FROM :seen

-- name: set_times
UPDATE sessions SET created = :created, updated = :updated WHERE session_id = :session

-- name: insert_entry
-- Only if the same transaction has moved the leaf.
INSERT INTO entries (
    session_id, id, kind, payload, pieces,
    seq, segment, joint, boundary, messages, tokens, compactions
)
SELECT session_id, CAST(:id AS text), CAST(:kind AS text), CAST(:payload AS bytea), CAST(:pieces AS bigint),
    CAST(:seq AS bigint), CAST(:segment AS bigint), CAST(:joint AS bigint), CAST(:boundary AS text),
    CAST(:messages AS bigint), CAST(:tokens AS bigint), CAST(:compactions AS bigint)
FROM sessions WHERE session_id = :session AND leaf = :leaf AND entries = :entries

-- name: insert_piece
INSERT INTO pieces (session_id, seq, piece, payload)
SELECT session_id, CAST(:seq AS bigint), CAST(:piece AS bigint), CAST(:payload AS bytea)
FROM sessions WHERE session_id = :session AND leaf = :leaf AND entries = :entries

-- name: seq
SELECT seq FROM entries WHERE session_id = :session AND id = :id

-- name: seqs
SELECT id, seq FROM entries WHERE session_id = :session AND id = ANY(CAST(:ids AS text[]))

-- name: place
SELECT seq, segment, joint, boundary, messages, tokens, compactions
FROM entries WHERE session_id = :session AND seq = :seq

-- name: payloads_of
SELECT id, payload FROM log WHERE session_id = :session AND id = ANY(CAST(:ids AS text[]))

-- name: payloads
SELECT payload, kind FROM log
WHERE session_id = :session AND seq BETWEEN :first AND :last
ORDER BY seq

-- name: marks
SELECT payload FROM log
WHERE session_id = :session AND seq BETWEEN :first AND :last
    AND kind <> 'said' AND kind = ANY(CAST(:kinds AS text[]))
ORDER BY seq

-- name: count_entries
SELECT count(*), coalesce(max(seq), 0) FROM entries WHERE session_id = :session

-- name: rows_to_verify
-- The parent of an entry follows from its place.
SELECT e.id, p.id, e.kind, e.payload,
    e.seq, e.segment, e.joint, e.boundary, e.messages, e.tokens, e.compactions,
    p.seq, p.segment, p.joint, p.boundary, p.messages, p.tokens, p.compactions
FROM log e
LEFT JOIN entries p ON p.session_id = e.session_id
    AND p.seq = CASE WHEN e.seq > e.segment THEN e.seq - 1 ELSE e.joint END
WHERE e.session_id = :session AND e.seq BETWEEN :first AND :last
ORDER BY e.seq

-- name: delete_entries
DELETE FROM entries WHERE session_id = :session

-- name: delete_pieces
DELETE FROM pieces WHERE session_id = :session

-- name: delete_index
DELETE FROM search WHERE session_id = :session

-- name: delete_session
DELETE FROM sessions WHERE session_id = :session

-- name: rows_without_session
SELECT 'entries', count(*) FROM entries e
    WHERE NOT EXISTS (SELECT 1 FROM sessions s WHERE s.session_id = e.session_id)
UNION ALL SELECT 'pieces', count(*) FROM pieces p
    WHERE NOT EXISTS (SELECT 1 FROM entries e WHERE e.session_id = p.session_id AND e.seq = p.seq AND e.pieces >= p.piece)
UNION ALL SELECT 'search', count(*) FROM search i
    WHERE NOT EXISTS (SELECT 1 FROM entries e WHERE e.session_id = i.session_id AND e.seq = i.seq)

-- name: searched
-- The entries to index.
SELECT seq, payload FROM log
WHERE session_id = :session AND seq BETWEEN :first AND :last AND kind IN ('said', 'compacted')
ORDER BY seq

-- name: sessions_behind
-- Sessions with messages that are not indexed yet.
SELECT session_id FROM sessions
WHERE indexed < entries AND (CAST(:session AS uuid) IS NULL OR session_id = CAST(:session AS uuid))

-- name: set_indexed
-- Only if no other connection has indexed them meanwhile, or purged the session and begun it again.
UPDATE sessions SET indexed = :upto WHERE session_id = :session AND indexed = :before AND begun = :begun

-- name: index_message
INSERT INTO search (session_id, seq, words) VALUES (:session, :seq, CAST(:words AS tsvector))

-- name: indexed_upto
SELECT indexed, entries, begun FROM sessions WHERE session_id = :session

-- name: matches
-- Messages with too many words for the index may match too.
SELECT i.session_id, i.seq FROM search i
JOIN sessions s ON s.session_id = i.session_id
WHERE i.words @@ CAST(:expression AS tsquery) OR i.words IS NULL
ORDER BY s.updated DESC, i.session_id, i.seq DESC
LIMIT :count OFFSET :offset

-- name: matches_of_session
SELECT session_id, seq FROM search
WHERE session_id = :session AND (words @@ CAST(:expression AS tsquery) OR words IS NULL)
ORDER BY seq DESC
LIMIT :count OFFSET :offset

-- name: count
SELECT count(*) FROM search
WHERE words @@ CAST(:expression AS tsquery)
    AND (CAST(:session AS uuid) IS NULL OR session_id = CAST(:session AS uuid))

-- name: searched_before
SELECT seq, payload FROM log
WHERE session_id = :session AND seq < :before AND kind IN ('said', 'compacted')
ORDER BY seq DESC LIMIT :count

-- name: found
SELECT s.id, e.seq, e.payload FROM log e JOIN sessions s ON s.session_id = e.session_id
WHERE e.session_id = :session AND e.seq = :seq

-- name: value
SELECT value FROM key_values
WHERE space = :space AND key = :key AND expires > extract(epoch FROM statement_timestamp())

-- name: value_keys
SELECT key FROM key_values WHERE space = :space AND expires > extract(epoch FROM statement_timestamp())

-- name: space_values
SELECT key, value FROM key_values WHERE space = :space AND expires > extract(epoch FROM statement_timestamp())

-- name: add_value
INSERT INTO key_values (space, key, session, value, written, expires)
VALUES (
    :space, :key, :session, :value,
    extract(epoch FROM statement_timestamp()), extract(epoch FROM statement_timestamp()) + :seconds
)
ON CONFLICT (space, key) DO UPDATE
SET session = excluded.session, value = excluded.value, written = excluded.written, expires = excluded.expires
WHERE key_values.expires <= extract(epoch FROM statement_timestamp())

-- name: replace_value
UPDATE key_values
SET value = :new, written = extract(epoch FROM statement_timestamp()),
    expires = extract(epoch FROM statement_timestamp()) + :seconds
WHERE space = :space AND key = :key AND value = :old AND expires > extract(epoch FROM statement_timestamp())

-- name: delete_value
DELETE FROM key_values
WHERE space = :space AND key = :key AND (value = :old OR CAST(:old AS bytea) IS NULL)
    AND expires > extract(epoch FROM statement_timestamp())

-- name: trim_values
DELETE FROM key_values WHERE space = :space AND key NOT IN
    (SELECT key FROM key_values WHERE space = :space ORDER BY written DESC, key DESC LIMIT :most)

-- name: expire_values
DELETE FROM key_values WHERE (space, key) IN (
    SELECT space, key FROM key_values WHERE expires <= extract(epoch FROM statement_timestamp())
    LIMIT 100 FOR UPDATE SKIP LOCKED
)

-- name: forget_values
DELETE FROM key_values WHERE session = :id

-- name: add_audit
INSERT INTO audit (at, action, session, record) VALUES (:at, :action, :session, :record)

-- name: audit_page
SELECT no, at, action, session, record FROM audit
WHERE (CAST(:session AS text) IS NULL OR session = :session) AND (CAST(:before AS bigint) IS NULL OR no < :before)
ORDER BY no DESC LIMIT :limit
