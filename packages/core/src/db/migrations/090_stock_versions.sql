-- What is sold, version by version: each content of the file that says it, and each set of operators' rules for the services
-- that the shop ships with. Only ever added to.
CREATE TABLE stock_versions (
  number bigint PRIMARY KEY CHECK (number > 0),
  kind text NOT NULL CHECK (kind IN ('file', 'rules')),
  -- JSON. It names environment variables that hold secrets, and holds none.
  content text NOT NULL,
  digest bytea NOT NULL CHECK (digest = sha256(convert_to(content, 'UTF8'))),
  made_at timestamptz NOT NULL,
  made_by text NOT NULL,
  -- The act of the operator who made the rules.
  act_id uuid UNIQUE REFERENCES operator_acts,
  CHECK ((kind = 'rules') = (act_id IS NOT NULL))
);
CREATE INDEX stock_versions_kind ON stock_versions (kind, number);

-- Which versions each process serves, and which it does not accept.
CREATE TABLE stock_replicas (
  replica bigint PRIMARY KEY REFERENCES replicas ON DELETE CASCADE,
  host text NOT NULL,
  file_version bigint,
  rules_version bigint,
  -- NULL with a reason: the file beside the process is refused, and is no version.
  refused_version bigint,
  reason text,
  noted_at timestamptz NOT NULL
);

-- An operator may sell a service otherwise. Such an act is about no account: it names that of what is sold for credit.
ALTER TABLE operator_acts DROP CONSTRAINT operator_acts_act_check;
ALTER TABLE operator_acts ADD CONSTRAINT operator_acts_act_check
  CHECK (act IN ('freeze', 'unfreeze', 'grant', 'refund_order', 'refund_call', 'mail_key', 'refund_payment', 'lift_bounds',
                 'set_service'));
ALTER TABLE operator_acts DROP CONSTRAINT operator_acts_amount;
ALTER TABLE operator_acts ADD CONSTRAINT operator_acts_amount
  CHECK ((act IN ('freeze', 'unfreeze', 'mail_key', 'lift_bounds', 'set_service')) = (amount_micros IS NULL));
