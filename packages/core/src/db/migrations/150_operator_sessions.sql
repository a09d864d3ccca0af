-- Operators who sign in at a provider (OpenID Connect), their sessions, and the trail of what operators asked for and were shown.

-- One row for each person who ever signed in with a role. Known by issuer and subject: an e-mail address may change hands.
CREATE TABLE operator_people (
  id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  issuer text NOT NULL,
  subject text NOT NULL,
  -- The name that stands in every act. It never changes, so that what is counted by operator stays counted.
  actor text NOT NULL UNIQUE,
  -- Verified by the provider; NULL: it told none.
  email text,
  -- The claims that roles follow from, as the provider told them at the last sign-in.
  claims jsonb NOT NULL,
  -- The role that an admin set; 'none' shuts the person out. NULL: the role that follows from the claims.
  role_set text CHECK (role_set IN ('none', 'read', 'support', 'money', 'admin')),
  first_at timestamptz NOT NULL,
  last_at timestamptz NOT NULL,
  UNIQUE (issuer, subject)
);

CREATE TABLE operator_sessions (
  id uuid PRIMARY KEY,
  -- SHA-256 of the cookie.
  digest bytea NOT NULL UNIQUE CHECK (length(digest) = 32),
  -- SHA-256 of the state of the sign-in that began it: one sign-in begins one session.
  state_digest bytea NOT NULL UNIQUE CHECK (length(state_digest) = 32),
  person_id bigint NOT NULL REFERENCES operator_people,
  -- From where it began.
  address text NOT NULL,
  agent text,
  began_at timestamptz NOT NULL,
  -- Up to a minute behind.
  seen_at timestamptz NOT NULL,
  -- It ends then at the latest.
  ends_at timestamptz NOT NULL,
  ended_at timestamptz,
  ended_why text CHECK (ended_why IN ('signed_out', 'by_admin', 'role_taken', 'too_many')),
  CHECK ((ended_at IS NULL) = (ended_why IS NULL))
);
CREATE INDEX operator_sessions_person ON operator_sessions (person_id, began_at);
CREATE INDEX operator_sessions_end ON operator_sessions (ends_at);

-- Whether the tokens of ADMIN_TOKENS open the page. Whoever changes a role holds this row, so that of two who take each other's
-- role at once the second sees what the first did.
CREATE TABLE operator_access (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  tokens_off_at timestamptz,
  tokens_off_by text
);
INSERT INTO operator_access (one) VALUES (true);

-- What operators asked for and were shown: sign-ins, changes of roles, acts that were asked for, reads of personal data, exports.
-- Only ever added to, and chained as `operator_acts` are.
CREATE TABLE operator_trail (
  number bigint PRIMARY KEY,
  at timestamptz NOT NULL,
  kind text NOT NULL,
  actor text NOT NULL,
  -- NULL: by a token.
  issuer text,
  subject text,
  email text,
  -- NULL: none, such as a command's.
  role text,
  -- The address of the caller; NULL: somebody on the server's machine.
  address text,
  -- JSON. It names accounts and calls by their numbers, and holds no customer's data.
  about text NOT NULL,
  digest bytea NOT NULL CHECK (length(digest) = 32)
);
CREATE TABLE operator_trail_head (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  number bigint NOT NULL,
  digest bytea NOT NULL CHECK (length(digest) = 32)
);
INSERT INTO operator_trail_head (number, digest) VALUES (0, decode(repeat('00', 32), 'hex'));
