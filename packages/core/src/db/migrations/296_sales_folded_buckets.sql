-- How far the count of what was sold has come with each bucket, on a database that is spread over servers: each bucket's calls lie on one
-- server, whose transactions tell what is complete. On one PostgreSQL there is no row. The row of bucket -1 is where all of them began.
CREATE TABLE sales_folded_buckets (
  bucket smallint PRIMARY KEY,
  -- As in `sales_folded`, of this bucket.
  calls_to timestamptz NOT NULL,
  transfers_to timestamptz NOT NULL,
  complete_to timestamptz NOT NULL DEFAULT '-infinity',
  -- A moment of the bucket's server, and the number of the transaction that noted it there: whatever was being written then has a lower one.
  marked_at timestamptz NOT NULL DEFAULT '-infinity',
  marked_xid bigint NOT NULL DEFAULT 0,
  -- That server, by the identifier of its system: the bucket may move to another one, whose numbers are others.
  marked_on bigint NOT NULL DEFAULT 0
);

-- NULL on one PostgreSQL, and for what was passed before the database was spread.
ALTER TABLE sales_open ADD COLUMN bucket smallint;
