-- What was sold by day, so that no page adds up calls. A job keeps both tables (`paid-call/functions/sales_fold_*.sql`); the
-- day is that on which a call ended or was refunded, in UTC.

-- Of all accounts together.
CREATE TABLE sales_days (
  day date NOT NULL,
  service text NOT NULL,
  rail text NOT NULL,
  -- Calls whose price was taken, and calls that gave it back.
  answered bigint NOT NULL DEFAULT 0,
  answered_micros bigint NOT NULL DEFAULT 0,
  released bigint NOT NULL DEFAULT 0,
  released_micros bigint NOT NULL DEFAULT 0,
  -- Calls whose price was taken, and was given back on this day.
  refunded bigint NOT NULL DEFAULT 0,
  refunded_micros bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (day, service, rail)
) WITH (fillfactor = 50);

-- The same of each account. What a chain pays for stands under the house's account 5.
CREATE TABLE account_sales_days (
  account_id bigint NOT NULL,
  day date NOT NULL,
  service text NOT NULL,
  rail text NOT NULL,
  answered bigint NOT NULL DEFAULT 0,
  answered_micros bigint NOT NULL DEFAULT 0,
  released bigint NOT NULL DEFAULT 0,
  released_micros bigint NOT NULL DEFAULT 0,
  refunded bigint NOT NULL DEFAULT 0,
  refunded_micros bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (account_id, day, service, rail)
) WITH (fillfactor = 50);

-- Transfers that are no calls, by day and code.
CREATE TABLE transfer_days (
  day date NOT NULL,
  code text NOT NULL,
  transfers bigint NOT NULL DEFAULT 0,
  moved_micros bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (day, code)
) WITH (fillfactor = 50);

-- How far the job has come. Whoever folds holds this row.
CREATE TABLE sales_folded (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  -- Calls that were begun before this are counted, or stand in `sales_open`.
  calls_to timestamptz NOT NULL DEFAULT '-infinity',
  -- Transfers that were made before this are counted.
  transfers_to timestamptz NOT NULL DEFAULT '-infinity',
  -- What was written before this is there to see: nobody is still writing it.
  complete_to timestamptz NOT NULL DEFAULT '-infinity',
  -- A moment, and the number of the transaction that noted it: whatever was being written then has a lower one.
  marked_at timestamptz NOT NULL DEFAULT '-infinity',
  marked_xid xid8 NOT NULL DEFAULT '0'
);

-- Calls that the job has passed while they were open: they count for the day on which they end.
CREATE TABLE sales_open (
  account_id bigint NOT NULL,
  id uuid NOT NULL,
  PRIMARY KEY (account_id, id)
);

-- The job follows calls by when they were begun, by the database's clock. Calls from before that was noted have all ended, and
-- are counted here.
INSERT INTO account_sales_days (account_id, day, service, rail, answered, answered_micros, released, released_micros)
SELECT account_id, (coalesce(finished_at, created_at) AT TIME ZONE 'UTC')::date, service, rail,
       count(*) FILTER (WHERE state = 1), coalesce(sum(price_micros) FILTER (WHERE state = 1), 0),
       count(*) FILTER (WHERE state = 2), coalesce(sum(price_micros) FILTER (WHERE state = 2), 0)
FROM calls WHERE begun_at IS NULL AND state IN (1, 2) GROUP BY 1, 2, 3, 4;
INSERT INTO sales_days (day, service, rail, answered, answered_micros, released, released_micros)
SELECT day, service, rail, sum(answered), sum(answered_micros), sum(released), sum(released_micros)
FROM account_sales_days GROUP BY 1, 2, 3;
INSERT INTO sales_folded DEFAULT VALUES;
