-- What a seller gives to the keys of an account beside the price: calls of a day for nothing, and bounds on how many there are.
-- Both count by root buyer, so that a key which buys further keys gains none.

-- The calls that cost nothing, one row each: their number is the count. A call that was given back takes its row with it. Rows
-- go when their day (UTC) has passed.
CREATE TABLE free_calls (
  account_id bigint NOT NULL,
  call_id uuid NOT NULL,
  root_buyer text NOT NULL,
  service text NOT NULL,
  day date NOT NULL,
  PRIMARY KEY (account_id, call_id)
);
CREATE INDEX free_calls_of_day ON free_calls (root_buyer, service, day);
CREATE INDEX free_calls_day ON free_calls (day);

-- How many calls of a service a root buyer has begun in the minute and on the day (UTC) of the latest of them.
CREATE TABLE call_quotas (
  root_buyer text NOT NULL,
  service text NOT NULL,
  minute timestamptz NOT NULL,
  minute_calls integer NOT NULL,
  day date NOT NULL,
  day_calls integer NOT NULL,
  PRIMARY KEY (root_buyer, service)
);
CREATE INDEX call_quotas_day ON call_quotas (day);
