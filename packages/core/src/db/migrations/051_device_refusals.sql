-- Reports by MQTT that were acknowledged and could not be taken, as they came: for the owner to see, and to be taken later where
-- that can be.
CREATE TABLE device_refusals (
  device bigint NOT NULL REFERENCES devices,
  -- In the order in which they came first.
  nth bigint NOT NULL,
  -- SHA-256 of the report: the same again is counted.
  digest bytea NOT NULL,
  report bytea NOT NULL,
  code text NOT NULL,
  reason text NOT NULL,
  count bigint NOT NULL DEFAULT 1,
  first_at timestamptz NOT NULL,
  last_at timestamptz NOT NULL,
  -- The sensor that it waits for.
  sensor text,
  -- When it is tried again.
  due_at timestamptz,
  PRIMARY KEY (device, nth),
  UNIQUE (device, digest)
);
CREATE INDEX device_refusals_due ON device_refusals (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX device_refusals_time ON device_refusals (last_at);

-- How many different reports were kept.
ALTER TABLE devices ADD COLUMN refusals bigint NOT NULL DEFAULT 0;
