-- The calls that a root buyer may leave unpaid in a day (UTC) by hanging up, each in a slot of its own: their number is
-- bounded by the key itself, on any number of replicas at once. Rows go when their day has passed.
CREATE TABLE free_hang_ups (
  -- Whose calls are counted together, such as `account:1015`.
  buyer text NOT NULL,
  day date NOT NULL,
  slot smallint NOT NULL,
  call_id uuid NOT NULL,
  -- The slot is held for a running call until then; NULL: its caller has hung up, and the slot is used.
  held_until timestamptz,
  PRIMARY KEY (buyer, day, slot)
);
CREATE INDEX free_hang_ups_call ON free_hang_ups (call_id);
