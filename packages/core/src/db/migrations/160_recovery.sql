-- Whether the database is as new as the world around it. A database that was restored knows less than chains, the card provider
-- and customers do: nothing is sold then, and no job runs, until `npm run recover` has found what was sold since.

-- Where the database ran when a server saw it last.
CREATE TABLE database_lineage (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  -- PostgreSQL's name for the cluster (`system_identifier`).
  cluster text NOT NULL,
  -- Counts up with each promotion and each restore to a point in time.
  timeline integer NOT NULL
);

CREATE TABLE recoveries (
  id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  found_at timestamptz NOT NULL,
  reason text NOT NULL CHECK (reason IN ('restored', 'cluster', 'timeline', 'rewound')),
  -- The newest time of which the database knows anything.
  known_until timestamptz NOT NULL,
  -- When selling was opened again, and who said so. NULL: it is shut.
  opened_at timestamptz,
  opened_by text,
  CHECK ((opened_at IS NULL) = (opened_by IS NULL))
);
CREATE UNIQUE INDEX recoveries_shut ON recoveries ((opened_at IS NULL)) WHERE opened_at IS NULL;

-- What was sold in the time that the database had forgotten, and what became of it.
CREATE TABLE recovered_sales (
  -- `card`, or the CAIP-2 name of a chain.
  source text NOT NULL,
  -- The order; or the payer and the nonce of its authorization.
  reference text NOT NULL,
  recovery_id bigint NOT NULL REFERENCES recoveries,
  amount_micros bigint NOT NULL CHECK (amount_micros > 0),
  -- granted: its credit is there   recorded: it is booked as sold   owed: it is sent back   refunded: it had been sent back
  became text NOT NULL CHECK (became IN ('granted', 'recorded', 'owed', 'refunded')),
  call_id uuid,
  at timestamptz NOT NULL,
  PRIMARY KEY (source, reference)
);
