-- Weeks of calls whose tables are being made compact, or were (`history/compact-weeks.ts`).
CREATE TABLE compacted_weeks (
  -- Such as `w20251124`, as its tables are called (`db/weeks.ts`).
  week text PRIMARY KEY CHECK (week ~ '^w[0-9]{8}$'),
  -- Until then somebody is at it, unless it is done.
  lease_until timestamptz NOT NULL,
  compacted_at timestamptz
);
