-- Devices that report, what they have reported, and who may read it.

-- A fleet is the owner's who named it first.
CREATE TABLE device_fleets (
  name text PRIMARY KEY,
  owner bigint NOT NULL
);

CREATE TABLE devices (
  no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text NOT NULL UNIQUE,
  -- The account whose key registered it.
  owner bigint NOT NULL,
  name text,
  fleet text REFERENCES device_fleets,
  -- Sold to everybody; else to the owner's keys and to those that it was offered to.
  public boolean NOT NULL,
  -- Its readings are made up, by its owner's own word.
  simulated boolean NOT NULL,
  -- The unit of each sensor.
  sensors jsonb NOT NULL,
  -- Where it stands, if it stands still.
  lat double precision,
  lon double precision,
  -- Ed25519: what its secret is checked by, which is kept nowhere.
  public_key bytea NOT NULL,
  created_at timestamptz NOT NULL,
  revoked_at timestamptz,
  -- How many readings it has reported. Each has its number, in the order of the commits.
  seq bigint NOT NULL DEFAULT 0,
  last_at timestamptz,
  -- Why its last report was refused, until one is taken.
  refused_at timestamptz,
  refusal text,
  CHECK ((lat IS NULL) = (lon IS NULL))
) WITH (fillfactor = 50);
CREATE INDEX devices_owner ON devices (owner, no);
CREATE INDEX devices_fleet ON devices (fleet) WHERE fleet IS NOT NULL;

-- Who a device was offered to, as whoever pays is named: an account, or a wallet on its network.
CREATE TABLE device_readers (
  device bigint NOT NULL REFERENCES devices,
  reader text NOT NULL,
  offered_at timestamptz NOT NULL,
  PRIMARY KEY (device, reader)
);
-- Offers that nobody has taken yet, by the digest of their code. Each is taken once.
CREATE TABLE device_offers (
  digest bytea PRIMARY KEY,
  device bigint NOT NULL REFERENCES devices,
  expires_at timestamptz NOT NULL
);

-- A partition for each day (UTC), made ahead and dropped by a job. What is sent again has the same time and key.
CREATE TABLE device_readings (
  device bigint NOT NULL,
  -- When it was measured, by the device's word.
  at timestamptz NOT NULL,
  key text NOT NULL,
  seq bigint NOT NULL,
  received_at timestamptz NOT NULL,
  -- Numbers, by sensor.
  measured jsonb NOT NULL,
  lat double precision,
  lon double precision,
  PRIMARY KEY (device, at, key)
) PARTITION BY RANGE (at);
CREATE INDEX device_readings_seq ON device_readings (device, seq);

-- Files that were sold, until they expire.
CREATE TABLE device_exports (
  id text PRIMARY KEY,
  media_type text NOT NULL,
  file_name text NOT NULL,
  content bytea NOT NULL,
  expires_at timestamptz NOT NULL
);
CREATE INDEX device_exports_expiry ON device_exports (expires_at);
