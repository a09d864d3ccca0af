-- Weeks of calls whose tables were made compact (`history/compact-weeks.ts`).
CREATE TABLE compacted_weeks (
  -- Such as `w20251124`, as its tables are called (`db/weeks.ts`).
  week text PRIMARY KEY CHECK (week ~ '^w[0-9]{8}$'),
  compacted_at timestamptz NOT NULL DEFAULT now()
);
