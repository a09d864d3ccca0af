-- What each process has used up of a source's burst, so that the process that follows it does not begin with a full one.
CREATE TABLE source_budgets (
  process uuid NOT NULL,
  source text NOT NULL,
  -- Requests that were missing from the process's share of the burst.
  missing double precision NOT NULL CHECK (missing > 0),
  -- When that was so: a process that lives writes it every second.
  at timestamptz NOT NULL,
  PRIMARY KEY (process, source)
);
ALTER TABLE source_budgets SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
