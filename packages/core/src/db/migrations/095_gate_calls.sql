-- Calls that servers behind gates answer by themselves: between their begin and their end, and a while longer, so that
-- whichever replica is told of an answer can hand it to the one that runs the call, and tell the outcome again.
CREATE TABLE gate_calls (
  -- A call whose payment has moved may run again, each time under another id.
  run_id uuid PRIMARY KEY,
  gate text NOT NULL,
  -- 0 begun, 1 what the guest said lies here, 2 the replica that runs the call has it, 3 over
  state smallint NOT NULL DEFAULT 0 CHECK (state BETWEEN 0 AND 3),
  -- Until then the guest may say something.
  open_until timestamptz NOT NULL,
  -- Status and headers of an answer, or why the call is given up; and the answer's body.
  said jsonb,
  body bytea,
  -- Status, headers and body (base64; null: the guest's own) of what the caller gets.
  outcome jsonb,
  expires_at timestamptz NOT NULL,
  CHECK ((state = 3) = (outcome IS NOT NULL))
);
CREATE INDEX gate_calls_expiry ON gate_calls (expires_at);

-- Messages of guests that were accepted: none is accepted twice.
CREATE TABLE gate_messages (
  gate text NOT NULL,
  nonce text NOT NULL,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (gate, nonce)
);
CREATE INDEX gate_messages_expiry ON gate_messages (expires_at);
