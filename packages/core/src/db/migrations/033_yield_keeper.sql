-- The keeper of the yield vault: who of the replicas looks now, and what came of the last look.
CREATE TABLE yield_keeper (
  -- Its address in small letters.
  vault text PRIMARY KEY,
  -- A look that has not ended by then is nobody's any more.
  looked_until timestamptz NOT NULL,
  -- Grows with each look: what an earlier one still writes is left out.
  look bigint NOT NULL,
  -- NULL: none has ended yet.
  reported_at timestamptz,
  -- As `yield/keeper/report.ts` shapes it.
  report jsonb
);
