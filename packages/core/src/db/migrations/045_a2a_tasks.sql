-- What was asked of this server over A2A and what became of it, for as long as it may be asked for. What was answered stands in
-- call_answers alone.
CREATE TABLE a2a_tasks (
  id text PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 64),
  -- Whose key made it; NULL: nobody's, and it belongs to whoever knows its id.
  account_id bigint,
  context_id text NOT NULL CHECK (length(context_id) BETWEEN 1 AND 128),
  -- By which the message that began it is known when it comes again; NULL: it begins a task of its own then.
  message_key bytea UNIQUE,
  -- What is asked for; NULL: that has not been said yet.
  service text,
  input text CHECK (length(input) <= 20000),
  -- charging: the last moment at which it could be canceled is over.
  state text NOT NULL
    CHECK (state IN ('input-required', 'working', 'charging', 'completed', 'failed', 'canceled')),
  -- How it is paid, and what makes that payment this one; NULL: by none that may have been taken.
  paid_by text CHECK (paid_by IN ('key', 'x402')),
  paid_with bytea,
  -- Until when whoever works on it may still be at work.
  working_until timestamptz,
  -- The call that it bought.
  call_account_id bigint,
  call_id uuid,
  -- What its status says beside its state, as JSON.
  told text CHECK (length(told) <= 20000),
  updated_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  CHECK ((call_id IS NULL) = (call_account_id IS NULL)),
  CHECK (state <> 'completed' OR call_id IS NOT NULL)
);
CREATE INDEX a2a_tasks_of ON a2a_tasks (account_id, updated_at DESC, id DESC) WHERE account_id IS NOT NULL;
CREATE INDEX a2a_tasks_expiry ON a2a_tasks (expires_at);
-- Those that bought nothing are bounded in number.
CREATE INDEX a2a_tasks_unpaid ON a2a_tasks (expires_at) WHERE call_id IS NULL;
