-- A running digest over the acts of operators: SHA-256 of the digest before it and of its own content. A row that somebody
-- with the database changes or removes shows in the next one.
ALTER TABLE operator_acts ADD COLUMN digest bytea CHECK (length(digest) = 32);

-- The last act's number and digest. Acts are written in turns: whoever writes one holds this row.
CREATE TABLE operator_acts_head (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  number bigint NOT NULL,
  digest bytea NOT NULL CHECK (length(digest) = 32)
);

-- Acts from before are linked as they stand now. The trigger `operator_acts_chained` has the same text.
ALTER TABLE operator_acts DISABLE TRIGGER operator_acts_stay;
WITH RECURSIVE chain AS (
  SELECT 0::bigint AS number, NULL::uuid AS id, decode(repeat('00', 32), 'hex') AS digest
  UNION ALL
  SELECT a.number, a.id, sha256(c.digest || convert_to(a.content, 'UTF8'))
  FROM chain c CROSS JOIN LATERAL (
    SELECT n.number, n.id,
           jsonb_build_array(n.number, n.id, to_char(n.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US'), n.actor, n.act,
             n.account_id, n.key_id, n.order_id, n.call_id, n.amount_micros, n.reason, n.transfer_id,
             encode(n.idempotency_digest, 'hex'), encode(n.request_digest, 'hex'))::text AS content
    FROM operator_acts n WHERE n.number > c.number ORDER BY n.number LIMIT 1
  ) a
)
UPDATE operator_acts a SET digest = c.digest FROM chain c WHERE a.id = c.id;
ALTER TABLE operator_acts ENABLE TRIGGER operator_acts_stay;
ALTER TABLE operator_acts ALTER COLUMN digest SET NOT NULL;

INSERT INTO operator_acts_head (number, digest)
SELECT coalesce(max(number), 0),
       coalesce((SELECT digest FROM operator_acts ORDER BY number DESC LIMIT 1), decode(repeat('00', 32), 'hex'))
FROM operator_acts;
