-- The schema as 83 migrations, up to `280_law_pages.sql`, had left it. A new database begins with this file. One that those
-- migrations made has it noted as done (`db/before-baseline.ts`), and both go on with the files after it.
--
-- Functions and triggers are not made here: the current text of each is a file in a folder `functions` of its owner, and
-- `db/functions.ts` brings it. Weeks of calls are made by the start (`db/weeks.ts`).
--
-- Amounts of money are micro-USD where a name says `micros`. Where a column that holds a time may be NULL, NULL says that it has not
-- happened. `next_at` is when a job looks at a row next; while it is being looked at, when whoever does so has had their time.
--
-- Tables that are vacuumed early hold few rows that are due among many that are past, and what is past stands before what is due in
-- an index by time until it is vacuumed. A share of all rows would be waited for the longer, the more there are.

-- -----------------------------------------------------------------------------------------------------------------------------------
-- The processes that serve, and the functions that they call.

-- Processes that serve. Each says again and again that it lives; whoever sees one say nothing for a while notes its end, and what it
-- held is free.
CREATE TABLE replicas (
  id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  beats bigint NOT NULL DEFAULT 0,
  started_at timestamptz NOT NULL,
  seen_at timestamptz NOT NULL,
  ended_at timestamptz,
  -- How far the clock of the process's machine is ahead of the database's, in milliseconds; null while that is not known.
  clock_ahead_ms bigint
);
CREATE INDEX replicas_ended ON replicas (ended_at) WHERE ended_at IS NOT NULL;

-- Functions that statements call, by the names that they have here: a name ends in the checksum of its text. Two versions of the
-- server call each their own.
CREATE TABLE sql_functions (
  name text PRIMARY KEY,
  -- When a process last said that it calls it. What nobody calls any more is dropped.
  wanted_at timestamptz NOT NULL
);

-- Functions of triggers, with their triggers: the writes of every version run the same one, so each has one text, and a text has a
-- number.
CREATE TABLE sql_triggers (
  name text PRIMARY KEY,
  text_number integer NOT NULL
);

-- The server's secret has versions, and what was made with one says with which.
CREATE TABLE secret_versions (
  id text PRIMARY KEY,
  -- Until then things may have been made with it.
  last_current_at timestamptz NOT NULL
);

-- -----------------------------------------------------------------------------------------------------------------------------------
-- The ledger, and calls.
--
-- Calls, their answers and their transfers lie in a table for each week, so that what is old can be put away without touching what is
-- new. The week is the one in the id: it begins with its time (UUID version 7), and is the second column of each key.
--
--   …_w20261123   the calls whose id was made in the week from that Monday (UTC); a job makes them ahead (`db/weeks.ts`)
--   …_caused      transfers whose id follows from a cause (UUID version 8, or an MD5): the upper fifteen sixteenths of all ids,
--                 which no time reaches before the year 2527. They stay for ever, so that no cause is applied twice
--   …_rest        all other ids: of a clock that is wrong, of a week that was not made yet, and a sixteenth of those that follow
--                 from a cause

-- Accounts. Those of the house (revenue, grants) have no running balance: theirs is the sum of their transfers, so no row is touched
-- by every call.
CREATE TABLE ledger_accounts (
  id bigint PRIMARY KEY,
  house boolean NOT NULL,
  name text UNIQUE,
  debits_pending bigint NOT NULL DEFAULT 0,
  debits_posted bigint NOT NULL DEFAULT 0,
  credits_pending bigint NOT NULL DEFAULT 0,
  credits_posted bigint NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- Below so much somebody wants to know. NULL: nobody does.
  low_below_micros bigint CHECK (low_below_micros > 0),
  -- Customers' accounts lie in buckets, so that they can be spread over several servers of a database: an account with its keys,
  -- calls, answers, transfers, spending and shares has one number, which is written down when the account is opened, and the
  -- functions that begin and end calls touch the rows of one bucket alone. The house lies in bucket 0: its accounts, and the payments
  -- on chains.
  --
  -- The keys of the tables do not hold the bucket: what is unique is so over all buckets, and a row is found without knowing its
  -- bucket. A key that held it would let a kept plan read a whole index by the bucket alone (see `calls_begin.sql`).
  bucket smallint NOT NULL DEFAULT 0,
  CHECK (debits_pending >= 0 AND debits_posted >= 0 AND credits_pending >= 0 AND credits_posted >= 0),
  -- The house's accounts have the numbers below 1000. They are sums over transfers and have no row that a call locks.
  CONSTRAINT house_numbers CHECK (house = (id < 1000)),
  CONSTRAINT ledger_accounts_bucket CHECK (bucket BETWEEN 0 AND 4095 AND (NOT house OR bucket = 0)),
  -- The second line of defence: the functions never let it come to this.
  CONSTRAINT never_overdrawn CHECK (house OR debits_pending + debits_posted <= credits_posted)
) WITH (fillfactor = 50);
CREATE SEQUENCE ledger_account_ids START 1000;
-- The house's accounts, as `ledger/accounts.ts` lists them.
INSERT INTO ledger_accounts (id, house, name) VALUES
  (1, true, 'revenue_credits'), (2, true, 'trial_grants'), (3, true, 'trial_expired'), (4, true, 'operator_grants'),
  (5, true, 'chain_clearing'), (6, true, 'revenue_x402'), (7, true, 'revenue_mpp'), (8, true, 'settlement_losses'),
  (9, true, 'card_clearing'), (10, true, 'promotions'), (11, true, 'receivables'), (13, true, 'shares_owed');

-- Transfers between accounts, which are only ever added. A transfer has an id and at most two rows: what it set out to do (posted at
-- once, or pending) and, for a pending one, how it ended (post or void). Both carry the account whose limit is at stake as
-- `account_id`, which comes first in the key.
--
-- No foreign key: the functions join the account anyway, and a key would be checked row by row, which costs more than the transfer
-- itself. `npm run books` looks for orphans.
CREATE TABLE ledger_transfers (
  account_id bigint NOT NULL,
  id uuid NOT NULL,
  debit_account bigint NOT NULL,
  credit_account bigint NOT NULL,
  amount_micros bigint NOT NULL,
  created_at timestamptz NOT NULL,
  -- 1 posted at once, 2 pending, 3 post of the pending one, 4 void of it
  phase smallint NOT NULL,
  resolves boolean NOT NULL GENERATED ALWAYS AS (phase >= 3) STORED,
  code text NOT NULL,
  note text,
  -- What the pending transfer reserved, where a post takes less; all of it is freed.
  reserved_micros bigint,
  bucket smallint NOT NULL DEFAULT 0,
  PRIMARY KEY (account_id, id, resolves),
  -- Numbered like this, because there was a table of the name before there were weeks.
  CONSTRAINT ledger_transfers_check2 CHECK (debit_account <> credit_account),
  CONSTRAINT ledger_transfers_check3 CHECK (account_id IN (debit_account, credit_account)),
  CONSTRAINT ledger_posts_no_more_than_reserved CHECK (reserved_micros IS NULL OR (phase = 3 AND amount_micros <= reserved_micros)),
  CONSTRAINT ledger_transfers_amount_micros_check1 CHECK (amount_micros > 0),
  CONSTRAINT ledger_transfers_phase_check1 CHECK (phase BETWEEN 1 AND 4)
) PARTITION BY RANGE (id);
CREATE TABLE ledger_transfers_rest PARTITION OF ledger_transfers DEFAULT;
CREATE TABLE ledger_transfers_caused PARTITION OF ledger_transfers
  FOR VALUES FROM ('10000000-0000-0000-0000-000000000000') TO (MAXVALUE);
CREATE INDEX ledger_transfers_time ON ledger_transfers USING brin (created_at);
CREATE INDEX ledger_transfers_other_account ON ledger_transfers (account_id, created_at) WHERE code <> 'call';
CREATE INDEX ledger_transfers_other_time ON ledger_transfers (created_at) WHERE code <> 'call';

-- Paid calls: one row each, whose id is also the id of its transfer in the ledger. Columns that have one size come first: nothing is
-- left empty between them.
CREATE TABLE calls (
  account_id bigint NOT NULL,
  id uuid NOT NULL,
  key_id bigint,
  -- What it costs: what is reserved for it while it runs, and what was taken once it is captured.
  price_micros bigint NOT NULL,
  -- What was reserved for a measured call, once it is captured; NULL: its price was known before.
  reserved_micros bigint,
  created_at timestamptz NOT NULL,
  -- When the reconciler may release it: long after the call's own deadline.
  expires_at timestamptz NOT NULL,
  finished_at timestamptz,
  -- When it was begun by the database's own clock, which is one for all replicas. NULL: before there was this column.
  begun_at timestamptz DEFAULT now(),
  -- Which process runs it, by its row in `replicas`. NULL: one that does not tell, and whose calls end by their time alone.
  holder bigint,
  -- 0 authorized (its price is reserved), 1 captured (its price is taken), 2 released (nothing was taken), 3 kept for a chain: its
  -- answer is stored (or its payment is sent before it runs) and only the outcome of its row in `settlements` captures or releases
  -- it.
  state smallint NOT NULL DEFAULT 0,
  -- Whether somebody gets a share of it: for all other calls nothing is looked up.
  shared boolean NOT NULL DEFAULT false,
  rail text NOT NULL,
  service text NOT NULL,
  -- Why it was released, or with which status it was answered.
  outcome text,
  -- As in `call_identities`, which keeps it unique. NULL: bought once, blind; or nothing was taken for it.
  identity text,
  -- What the chain itself takes at most once, such as an authorization's nonce; `identity` may be the payer's own name for the
  -- payment, so that one name with two signatures is still one purchase.
  payment_key text,
  -- SHA-256 over what was asked; the same payment for another question is refused.
  fingerprint bytea,
  bucket smallint NOT NULL DEFAULT 0,
  PRIMARY KEY (account_id, id),
  CONSTRAINT calls_take_no_more_than_reserved
    CHECK (reserved_micros IS NULL OR (price_micros > 0 AND price_micros <= reserved_micros))
) PARTITION BY RANGE (id);
-- Half of each page stays free: a call that ends changes its row in place, and no index hears of it. (With a fifth free six calls in
-- ten moved to another page, which every index of the table had to note.)
CREATE TABLE calls_rest PARTITION OF calls DEFAULT WITH (fillfactor = 50);
-- Open calls are found by time: no index names `state`, so that ending a call is an update in place.
CREATE INDEX calls_time ON calls USING brin (created_at) WITH (pages_per_range = 16);
CREATE INDEX calls_begun ON calls (begun_at) WHERE begun_at IS NOT NULL;

-- What each payment bought: a key over several tables cannot keep a payment unique, so this narrow one does.
CREATE TABLE call_identities (
  account_id bigint NOT NULL,
  -- 0 what distinguishes the payment  1 the same payment under the name that its chain gives it
  kind smallint NOT NULL CHECK (kind IN (0, 1)),
  identity text NOT NULL,
  call_id uuid NOT NULL,
  bucket smallint NOT NULL DEFAULT 0,
  PRIMARY KEY (account_id, kind, identity)
);

-- What a captured call with an identity answered, for as long as the same payment may ask again.
CREATE TABLE call_answers (
  account_id bigint NOT NULL,
  id uuid NOT NULL,
  expires_at timestamptz NOT NULL,
  status smallint NOT NULL,
  headers jsonb NOT NULL,
  body text NOT NULL,
  bucket smallint NOT NULL DEFAULT 0,
  PRIMARY KEY (account_id, id)
) PARTITION BY RANGE (id);
CREATE TABLE call_answers_rest PARTITION OF call_answers DEFAULT
  WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
CREATE INDEX call_answers_expiry ON call_answers (expires_at);

-- Captured calls of customers by account, day (UTC) and service: what a key's owner sees, and what daily caps are measured by.
-- Spending of the house is not counted: such a row would be one for every call that a chain pays.
CREATE TABLE call_spending (
  account_id bigint NOT NULL,
  day date NOT NULL,
  service text NOT NULL,
  calls bigint NOT NULL,
  spent_micros bigint NOT NULL,
  bucket smallint NOT NULL DEFAULT 0,
  PRIMARY KEY (account_id, day, service)
) WITH (fillfactor = 50);

-- What was begun before this has ended, or stands in `calls_left_open`.
CREATE TABLE calls_open_since (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  begun_at timestamptz NOT NULL
);
INSERT INTO calls_open_since (begun_at) VALUES (now() - interval '1 hour');

-- Calls that were open when the mark above passed them.
CREATE TABLE calls_left_open (
  account_id bigint NOT NULL,
  id uuid NOT NULL,
  PRIMARY KEY (account_id, id)
);

-- Calls whose capture may have been committed while its answer was withheld: to be given back, or kept for whoever can ask for the
-- answer. A row goes when that is done.
CREATE TABLE undelivered_calls (
  account_id bigint NOT NULL,
  call_id uuid NOT NULL,
  service text NOT NULL,
  price_micros bigint NOT NULL,
  revenue_account bigint NOT NULL,
  retrievable boolean NOT NULL,
  -- When it is tried next.
  next_at timestamptz NOT NULL,
  -- Its account's: whoever looks at it later does not know the account.
  bucket smallint NOT NULL DEFAULT 0,
  PRIMARY KEY (account_id, call_id)
);
CREATE INDEX undelivered_calls_due ON undelivered_calls (next_at);

-- Calls that nobody could ask for again, followed until their answer has arrived: by whom one may be cancelled, and what is kept of
-- one that was charged and whose answer was lost on its way.
CREATE TABLE followed_calls (
  account_id bigint NOT NULL,
  call_id uuid NOT NULL,
  key_id bigint NOT NULL,
  -- SHA-256 of what was asked, 32 bytes.
  fingerprint bytea NOT NULL,
  -- The delivery of the answer that goes on: the first, or that to a repeat.
  delivery uuid NOT NULL UNIQUE,
  -- The process that delivers, by its row in `replicas`. When it has ended, so has the delivery.
  holder bigint,
  -- How the client names itself and its request; NULL: it did not, or has no way to cancel.
  client text,
  request_id text,
  -- 0 on its way, 1 lost (cancelled, or the stream broke), 2 arrived
  state smallint NOT NULL DEFAULT 0,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (account_id, call_id)
);
CREATE INDEX followed_calls_expiry ON followed_calls (expires_at);
CREATE INDEX followed_calls_owed ON followed_calls (key_id, fingerprint) WHERE state <> 2;
CREATE INDEX followed_calls_request ON followed_calls (key_id, request_id) WHERE request_id IS NOT NULL;

-- The calls that a root buyer may leave unpaid in a day (UTC) by hanging up, each in a slot of its own: their number is bounded by
-- the key itself, on any number of replicas at once. Rows go when their day has passed.
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

-- What a seller gives to the keys of an account beside the price, calls of a day for nothing: one row each, so their number is the
-- count. They count by root buyer, so that a key which buys further keys gains none. A call that was given back takes its row with
-- it. Rows go when their day (UTC) has passed.
CREATE TABLE free_calls (
  account_id bigint NOT NULL,
  call_id uuid NOT NULL,
  root_buyer text NOT NULL,
  service text NOT NULL,
  day date NOT NULL,
  PRIMARY KEY (account_id, call_id)
);
CREATE INDEX free_calls_of_day ON free_calls (root_buyer, service, day);
CREATE INDEX free_calls_day ON free_calls (day);

-- How many calls of a service a root buyer has begun in the minute and on the day (UTC) of the latest of them.
CREATE TABLE call_quotas (
  root_buyer text NOT NULL,
  service text NOT NULL,
  minute timestamptz NOT NULL,
  minute_calls integer NOT NULL,
  day date NOT NULL,
  day_calls integer NOT NULL,
  PRIMARY KEY (root_buyer, service)
);
CREATE INDEX call_quotas_day ON call_quotas (day);

-- What others get of the price of a call, such as the owner of the device whose readings were sold. It is set aside in the commit
-- that takes the price, by a transfer from what the rail has earned, and taken back in the commit that gives the price back. No
-- account is locked for it: a customer's account would have to be, and captures wait for nobody's lock. A job pays it out.
CREATE TABLE call_shares (
  account_id bigint NOT NULL,
  call_id uuid NOT NULL,
  -- The customer's account that gets it.
  beneficiary bigint NOT NULL,
  amount_micros bigint NOT NULL CHECK (amount_micros > 0),
  -- 0 noted: the call is not captured   1 set aside   2 taken back
  state smallint NOT NULL DEFAULT 0 CHECK (state BETWEEN 0 AND 2),
  -- What is still to be paid out of it; below zero when it was paid out and then taken back.
  due_micros bigint NOT NULL DEFAULT 0,
  set_aside_at timestamptz,
  -- Shares of calls that card credit paid wait until the card payment is so old that a theft would have been noticed.
  held_until timestamptz,
  -- The order by which they were taken back because the card payment went back before, and how much of it.
  reversed_by uuid,
  reversed_micros bigint NOT NULL DEFAULT 0,
  bucket smallint NOT NULL DEFAULT 0,
  PRIMARY KEY (account_id, call_id),
  CHECK (beneficiary <> account_id),
  CHECK (reversed_micros BETWEEN 0 AND amount_micros),
  CONSTRAINT call_shares_reversed_by_check CHECK ((reversed_by IS NULL) = (reversed_micros = 0))
);
CREATE INDEX call_shares_due ON call_shares (beneficiary) WHERE due_micros <> 0;
CREATE INDEX call_shares_beneficiary ON call_shares (beneficiary, state) INCLUDE (amount_micros);
CREATE INDEX call_shares_reversed ON call_shares (reversed_by) WHERE reversed_by IS NOT NULL;

-- Payouts of an account, by their numbers: a transfer each.
CREATE TABLE share_payouts (
  beneficiary bigint NOT NULL,
  nth integer NOT NULL,
  transfer_id uuid NOT NULL,
  amount_micros bigint NOT NULL CHECK (amount_micros > 0),
  paid_at timestamptz NOT NULL,
  PRIMARY KEY (beneficiary, nth)
);

-- Requests that paid on a chain, and requests that failed on our side: by the id that their answers named. Kept for thirty days. They
-- are written beside the calls, so a process that dies loses those of its last seconds.
CREATE TABLE paid_requests (
  request_id text PRIMARY KEY,
  at timestamptz NOT NULL,
  service text NOT NULL,
  rail text NOT NULL,
  outcome text NOT NULL,
  status smallint NOT NULL,
  reason text,
  call_id uuid
);
CREATE INDEX paid_requests_call ON paid_requests (call_id) WHERE call_id IS NOT NULL;
CREATE INDEX paid_requests_time ON paid_requests (at);

-- How the services have answered in the last day, for buyers who compare them. A job computes it again; each row is of one service.
CREATE TABLE service_figures (
  service text PRIMARY KEY,
  -- Calls that were answered, and calls that failed by a fault of ours or of a source, among those that were looked at.
  answered integer NOT NULL,
  failed integer NOT NULL,
  -- From a call's beginning to its end, of answered ones; NULL: none was answered.
  median_ms integer,
  measured_at timestamptz NOT NULL
);

-- Calls that servers behind gates answer by themselves: between their begin and their end, and a while longer, so that whichever
-- replica is told of an answer can hand it to the one that runs the call, and tell the outcome again.
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

-- -----------------------------------------------------------------------------------------------------------------------------------
-- What was sold, day by day; days of the books that are closed; and weeks of calls that have left.

-- What was sold by day, so that no page adds up calls. A job keeps both tables (`paid-call/functions/sales_fold_*.sql`); the day is
-- that on which a call ended or was refunded, in UTC. This one is of all accounts together.
CREATE TABLE sales_days (
  day date NOT NULL,
  service text NOT NULL,
  rail text NOT NULL,
  -- Calls whose price was taken, and calls that gave it back.
  answered bigint NOT NULL DEFAULT 0,
  answered_micros bigint NOT NULL DEFAULT 0,
  released bigint NOT NULL DEFAULT 0,
  released_micros bigint NOT NULL DEFAULT 0,
  -- Calls whose price was taken, and was given back on this day.
  refunded bigint NOT NULL DEFAULT 0,
  refunded_micros bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (day, service, rail)
) WITH (fillfactor = 50);

-- The same of each account. What a chain pays for stands under the house's account 5.
CREATE TABLE account_sales_days (
  account_id bigint NOT NULL,
  day date NOT NULL,
  service text NOT NULL,
  rail text NOT NULL,
  answered bigint NOT NULL DEFAULT 0,
  answered_micros bigint NOT NULL DEFAULT 0,
  released bigint NOT NULL DEFAULT 0,
  released_micros bigint NOT NULL DEFAULT 0,
  refunded bigint NOT NULL DEFAULT 0,
  refunded_micros bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (account_id, day, service, rail)
) WITH (fillfactor = 50);

-- Transfers that are no calls, by day and code.
CREATE TABLE transfer_days (
  day date NOT NULL,
  code text NOT NULL,
  transfers bigint NOT NULL DEFAULT 0,
  moved_micros bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (day, code)
) WITH (fillfactor = 50);

-- How far the job has come. Whoever folds holds this row.
CREATE TABLE sales_folded (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  -- Calls that were begun before this are counted, or stand in `sales_open`.
  calls_to timestamptz NOT NULL DEFAULT '-infinity',
  -- Transfers that were made before this are counted.
  transfers_to timestamptz NOT NULL DEFAULT '-infinity',
  -- What was written before this is there to see: nobody is still writing it.
  complete_to timestamptz NOT NULL DEFAULT '-infinity',
  -- A moment, and the number of the transaction that noted it: whatever was being written then has a lower one.
  marked_at timestamptz NOT NULL DEFAULT '-infinity',
  marked_xid xid8 NOT NULL DEFAULT '0'
);
INSERT INTO sales_folded DEFAULT VALUES;

-- Calls that the job has passed while they were open: they count for the day on which they end.
CREATE TABLE sales_open (
  account_id bigint NOT NULL,
  id uuid NOT NULL,
  PRIMARY KEY (account_id, id)
);

-- Days of the ledger that are closed: nothing made in them is pending any more, and no proof has to read them again but the whole
-- one. `ledger/functions/ledger_close_day.sql` writes these tables; rules of the books hold them.
CREATE TABLE ledger_days (
  -- In UTC. Days follow one another without a gap.
  day date PRIMARY KEY,
  -- The transfers that were made on the day, and SHA-256 over them.
  transfers bigint NOT NULL,
  transfers_digest bytea NOT NULL CHECK (length(transfers_digest) = 32),
  -- SHA-256 over the day's rows of `ledger_day_moves`.
  moves_digest bytea NOT NULL CHECK (length(moves_digest) = 32),
  -- SHA-256 over the digest of the day before and this row.
  digest bytea NOT NULL CHECK (length(digest) = 32),
  closed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Since when the transfers of the day stand in a file and no longer in `ledger_transfers`: their moves stay here.
  archived_at timestamptz,
  -- Whether its digest leaves out calls that were begun and released on the day, which do not stay. Days that were closed before
  -- there was this column have all of their transfers in it.
  released_apart boolean NOT NULL DEFAULT false,
  -- Since when they are gone.
  released_gone_at timestamptz
);

-- What each account, the house's among them, moved on a closed day. What was pending may become less on a day.
CREATE TABLE ledger_day_moves (
  day date NOT NULL,
  account_id bigint NOT NULL,
  debits_pending bigint NOT NULL,
  debits_posted bigint NOT NULL,
  credits_pending bigint NOT NULL,
  credits_posted bigint NOT NULL,
  PRIMARY KEY (day, account_id)
);

-- The balances at the end of the last closed day: the sums of the moves of all closed days.
CREATE TABLE ledger_closed_balances (
  account_id bigint PRIMARY KEY,
  debits_pending bigint NOT NULL,
  debits_posted bigint NOT NULL,
  credits_pending bigint NOT NULL,
  credits_posted bigint NOT NULL
) WITH (fillfactor = 50);

-- The end of the chain. Whoever closes a day holds this row.
CREATE TABLE ledger_days_head (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  -- The first day that is open. NULL: no day was closed yet.
  open_day date,
  -- The digest of the last closed day.
  digest bytea NOT NULL DEFAULT decode(repeat('00', 32), 'hex') CHECK (length(digest) = 32),
  -- A moment, and the number of the transaction that noted it: whatever was being written then has a lower one.
  marked_at timestamptz NOT NULL DEFAULT '-infinity',
  marked_xid xid8 NOT NULL DEFAULT '0'
);
INSERT INTO ledger_days_head DEFAULT VALUES;

-- Weeks of calls that are being archived, or were: they are written to files and leave the database (`history/`). What they moved
-- stays, by day and account, so that the books are proved without them.
CREATE TABLE call_archives (
  -- Such as `w20251124`, as its tables are called (`db/weeks.ts`).
  week text PRIMARY KEY CHECK (week ~ '^w[0-9]{8}$'),
  -- Ids from the first to before the second are of the week.
  from_id uuid NOT NULL,
  to_id uuid NOT NULL,
  -- Since when nothing in the week can be changed any more. The rows below it are set by the steps, in their order.
  sealed_at timestamptz NOT NULL,
  -- Since when the files hold what is to leave.
  written_at timestamptz,
  -- Since when it has left.
  dropped_at timestamptz,
  -- Who works on it, until when.
  holder uuid,
  lease_until timestamptz NOT NULL DEFAULT '-infinity',
  -- The names of the files in HISTORY_FOLDER, and SHA-256 of each.
  calls_file text,
  calls_sha256 bytea CHECK (length(calls_sha256) = 32),
  transfers_file text,
  transfers_sha256 bytea CHECK (length(transfers_sha256) = 32),
  -- The rows of the files, and what they add up to.
  captured bigint,
  released bigint,
  calls_micros numeric,
  transfers bigint,
  transfers_micros numeric,
  CHECK (written_at IS NULL OR num_nonnulls(calls_file, calls_sha256, transfers_file, transfers_sha256, captured, released,
    calls_micros, transfers, transfers_micros) = 9),
  CHECK (dropped_at IS NULL OR written_at IS NOT NULL)
);

-- What each account, the house's among them, moved on a day by transfers that stand in files.
CREATE TABLE ledger_carried (
  week text NOT NULL,
  day date NOT NULL,
  account_id bigint NOT NULL,
  -- Of customers: how many transfers of theirs it is. Zero for the house, whose transfers are all a customer's.
  transfers bigint NOT NULL,
  debits_pending bigint NOT NULL,
  debits_posted bigint NOT NULL,
  credits_pending bigint NOT NULL,
  credits_posted bigint NOT NULL,
  PRIMARY KEY (day, account_id, week)
);

-- The captured calls that stand in files, by account, key, service and the day (UTC) on which they ended.
CREATE TABLE calls_carried (
  week text NOT NULL,
  account_id bigint NOT NULL,
  -- Zero: no key.
  key_id bigint NOT NULL,
  service text NOT NULL,
  day date NOT NULL,
  calls bigint NOT NULL,
  -- Those of them that cost something.
  charged bigint NOT NULL,
  spent_micros bigint NOT NULL,
  PRIMARY KEY (account_id, day, service, key_id, week)
);
CREATE INDEX calls_carried_day ON calls_carried (day);

-- Weeks of calls whose tables are being made compact, or were (`history/compact-weeks.ts`).
CREATE TABLE compacted_weeks (
  -- Such as `w20251124`, as its tables are called (`db/weeks.ts`).
  week text PRIMARY KEY CHECK (week ~ '^w[0-9]{8}$'),
  -- Until then somebody is at it, unless it is done.
  lease_until timestamptz NOT NULL,
  compacted_at timestamptz
);

-- What proving the books came to, each time; forgotten after a while.
CREATE TABLE books_verdicts (
  id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  started_at timestamptz NOT NULL,
  ended_at timestamptz NOT NULL,
  balanced boolean NOT NULL,
  -- As `ledger/books.ts` tells it; amounts in micro-USD, as text.
  books jsonb NOT NULL
);
CREATE INDEX books_verdicts_time ON books_verdicts (ended_at);

-- Who is proving them now, on whichever replica: proving reads all there is, so one at a time is enough.
CREATE TABLE books_proof (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  leased_until timestamptz NOT NULL,
  -- The proof of the books that is under way: its number, which grows with each, and who asked for it when. Whoever takes over has
  -- the next number, and what an older one found is not written down any more.
  number bigint NOT NULL DEFAULT 0,
  started_at timestamptz
);
INSERT INTO books_proof (leased_until) VALUES ('-infinity');

-- -----------------------------------------------------------------------------------------------------------------------------------
-- Keys, trials, and credit that is bought.

-- API keys. A key is a way to an account of the ledger; rotation gives the account another key.
CREATE TABLE api_keys (
  id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  account_id bigint NOT NULL REFERENCES ledger_accounts,
  -- The first eight bytes of the digest: what a key is found by. The whole digest is then compared in constant time.
  lookup bigint NOT NULL UNIQUE,
  digest bytea NOT NULL CHECK (length(digest) = 32),
  prefix text NOT NULL,
  kind text NOT NULL CHECK (kind IN ('trial', 'paid', 'grant')),
  label text,
  status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'revoked', 'frozen')),
  created_at timestamptz NOT NULL,
  expires_at timestamptz,
  -- Set once the unused rest of an expired trial was taken back.
  trial_closed boolean NOT NULL DEFAULT false,
  -- Micro-USD; NULL: no cap.
  cap_per_call_micros bigint CHECK (cap_per_call_micros > 0),
  cap_per_day_micros bigint CHECK (cap_per_day_micros > 0),
  -- Until then the owner cannot raise the cap per day: cards that nobody knows yet pay for little at first.
  cap_fixed_until timestamptz,
  -- While a key's cap per day is held: what its owner has it at. NULL: none.
  cap_afterwards_micros bigint CHECK (cap_afterwards_micros > 0),
  -- When a rotation ended a key. Its row is forgotten some time later.
  rotated_at timestamptz,
  -- Its account's.
  bucket smallint NOT NULL DEFAULT 0
);
CREATE INDEX api_keys_account ON api_keys (account_id);
CREATE INDEX api_keys_fixed_caps ON api_keys (cap_fixed_until) WHERE cap_fixed_until IS NOT NULL;
CREATE INDEX api_keys_rotated ON api_keys (rotated_at, id) WHERE rotated_at IS NOT NULL;

-- From where a key was used, as an HMAC; kept only where somebody wants to be told of new ones.
CREATE TABLE key_addresses (
  key_id bigint NOT NULL,
  digest bytea NOT NULL,
  seen_at timestamptz NOT NULL,
  PRIMARY KEY (key_id, digest)
);
CREATE INDEX key_addresses_time ON key_addresses (seen_at);

-- Who has had a trial. The claimant is an HMAC of an address or of an installation: never the thing itself.
CREATE TABLE trial_claims (
  claimant bytea PRIMARY KEY,
  claimed_at timestamptz NOT NULL,
  account_id bigint NOT NULL REFERENCES ledger_accounts,
  -- The version of the secret that the HMAC is of.
  secret_id text,
  -- The IPv6 site (/48) that a claim came from, as an HMAC; NULL for IPv4 and for what is no address.
  site bytea
);
CREATE INDEX trial_claims_time ON trial_claims (claimed_at);
CREATE INDEX trial_claims_site ON trial_claims (site, claimed_at) WHERE site IS NOT NULL;

-- What trials gave: one row an account, whatever keys it has had since.
CREATE TABLE trial_credits (
  account_id bigint PRIMARY KEY REFERENCES ledger_accounts,
  granted_micros bigint NOT NULL CHECK (granted_micros > 0),
  granted_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  -- When the account first got money of its own, bought or given by an operator.
  bought_at timestamptz,
  -- kept: that ended the trial, and what was left of it stays.   expired: its time did, and what was left was taken.
  ended text CHECK (ended IN ('kept', 'expired')),
  ended_at timestamptz,
  -- Whether the job has to look at it once its time is over.
  due boolean NOT NULL DEFAULT true,
  expired_micros bigint NOT NULL DEFAULT 0 CHECK (expired_micros >= 0),
  -- How many transfers took it; they are named by it.
  rounds integer NOT NULL DEFAULT 0,
  -- Trial credit that paid for a key is trial credit there too. The account that it came from; NULL: a day's trial.
  moved_from bigint REFERENCES ledger_accounts,
  -- What came back of a trial's spending: it is trial credit again.
  given_back_micros bigint NOT NULL DEFAULT 0,
  CHECK ((ended IS NULL) = (ended_at IS NULL)),
  CHECK (ended = 'expired' OR expired_micros = 0)
);
CREATE INDEX trial_credits_due ON trial_credits (expires_at) WHERE due;

-- What each day (UTC) has given in trials. Whoever gives one adds it here in the same commit, or gives none.
CREATE TABLE trial_days (
  day date PRIMARY KEY,
  granted_micros bigint NOT NULL CHECK (granted_micros >= 0),
  trials integer NOT NULL CHECK (trials >= 0)
);

-- Who bought the first key of those that were bought with a key's credit: the account or the wallet. Bounds are counted by it, so
-- that a key which buys the next one gains nothing. An account without a row is its own root buyer.
CREATE TABLE root_buyers (
  account_id bigint PRIMARY KEY REFERENCES ledger_accounts,
  -- `account:1015`, or `wallet:0x…`.
  root_buyer text NOT NULL
);
CREATE INDEX root_buyers_root ON root_buyers (root_buyer, account_id);

-- Root buyers whose accounts are counted one by one, because an operator said so: they sell keys on.
CREATE TABLE lifted_bounds (
  root_buyer text PRIMARY KEY,
  lifted_at timestamptz NOT NULL
);

-- Credit that is bought with a payment on a chain. The payment is a paid call; a row here says whose credit it buys. It is written
-- before the payment goes to the chain and grants nothing: the credit moves once the call is captured.
CREATE TABLE topups (
  -- Of the paid call, in the account of those who pay on chains.
  call_id uuid PRIMARY KEY,
  -- Whose credit it is. NULL: a new account's, which is opened together with its key when the payment is captured.
  account_id bigint REFERENCES ledger_accounts,
  -- What is stored of the new key, until it is.
  key_lookup bigint,
  key_digest bytea CHECK (length(key_digest) = 32),
  key_prefix text,
  amount_micros bigint NOT NULL CHECK (amount_micros > 0),
  created_at timestamptz NOT NULL,
  -- When the credit was granted, in the commit of its transfer.
  granted_at timestamptz,
  -- What was taken back, because the chain had forgotten the payment: as much of it as was not spent.
  taken_back_micros bigint,
  -- When it was seen that nothing can happen to it any more.
  closed_at timestamptz,
  key_bucket smallint NOT NULL DEFAULT 0,
  CHECK (taken_back_micros BETWEEN 0 AND amount_micros),
  CHECK (num_nulls(key_lookup, key_digest, key_prefix) IN (0, 3)),
  CHECK (account_id IS NOT NULL OR key_digest IS NOT NULL),
  CHECK (granted_at IS NULL OR account_id IS NOT NULL),
  CHECK (granted_at IS NOT NULL OR (closed_at IS NULL AND taken_back_micros IS NULL))
);
-- What a job has to look at.
CREATE INDEX topups_open ON topups (created_at) WHERE closed_at IS NULL;

-- Keys that are sold. The purchase is a paid call; a row here is the key that it buys. It is written while the call runs and grants
-- nothing: the key comes to be, with what was paid for it, once the call is captured.
CREATE TABLE sold_keys (
  call_id uuid PRIMARY KEY,
  -- Whose call it is: a customer's account, or that of those who pay on chains.
  payer_account bigint NOT NULL REFERENCES ledger_accounts,
  -- Of the transfer that would give back its price.
  refund_id uuid NOT NULL UNIQUE,
  label text,
  amount_micros bigint NOT NULL CHECK (amount_micros > 0),
  -- The key, encrypted for its call, so that the call run again answers the same. Gone once it is granted.
  sealed_key text,
  key_lookup bigint NOT NULL,
  key_digest bytea NOT NULL CHECK (length(key_digest) = 32),
  key_prefix text NOT NULL,
  created_at timestamptz NOT NULL,
  -- The new key's account, opened in the commit that moves the money to it.
  account_id bigint REFERENCES ledger_accounts,
  granted_at timestamptz,
  -- What was taken back of it: its price was given back, or a chain forgot the payment.
  taken_back_micros bigint,
  -- When it was seen that there is nothing left to do; a refund opens it again.
  closed_at timestamptz,
  -- A sold key whose price went back stays on record, also when it was never granted: the refund can then be told from one of a key
  -- that is still good. Whoever grants and whoever gives back take this row's lock, so the second finds the first.
  refunded_at timestamptz,
  -- The bucket that a key names which is handed out before its account is opened.
  key_bucket smallint NOT NULL DEFAULT 0,
  CHECK (taken_back_micros BETWEEN 0 AND amount_micros),
  CHECK ((granted_at IS NULL) = (account_id IS NULL)),
  CONSTRAINT closed_once_granted_or_refunded CHECK (closed_at IS NULL OR granted_at IS NOT NULL OR refunded_at IS NOT NULL),
  CONSTRAINT sealed_until_it_is_granted_or_closed CHECK ((sealed_key IS NOT NULL) = (granted_at IS NULL AND closed_at IS NULL)),
  CONSTRAINT taken_back_once_granted CHECK (taken_back_micros IS NULL OR granted_at IS NOT NULL)
);
-- What a job has to look at.
CREATE INDEX sold_keys_open ON sold_keys (created_at) WHERE closed_at IS NULL;
-- Which keys an account has bought, and with whose credit it was bought itself.
CREATE INDEX sold_keys_payer ON sold_keys (payer_account) WHERE account_id IS NOT NULL;
CREATE INDEX sold_keys_account ON sold_keys (account_id) WHERE account_id IS NOT NULL;

-- Where the credit comes from that a key was bought with. A card payment that goes back is followed by it into keys that were bought
-- with it, and into those that they bought; trial credit stays it by it.
CREATE TABLE credit_origins (
  -- The sale, and the order in which its parts are spent.
  call_id uuid NOT NULL,
  nth smallint NOT NULL,
  -- Names this part where a further key is bought with it.
  lot uuid NOT NULL,
  payer_account bigint NOT NULL,
  -- What of the payer's credit paid it: a card order, another inflow's transfer, or a lot here. NULL: not known.
  payer_lot uuid,
  -- The card order that it came from, over any number of keys.
  order_id uuid,
  trial boolean NOT NULL,
  amount_micros bigint NOT NULL CHECK (amount_micros > 0),
  -- The key's account, once it is granted.
  account_id bigint,
  -- What of it was taken because the order's payment went back.
  taken_micros bigint NOT NULL DEFAULT 0,
  -- Set once the price of the key went back: its payer has that credit again.
  ended boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (call_id, nth),
  CHECK (taken_micros BETWEEN 0 AND amount_micros),
  CHECK (NOT (trial AND order_id IS NOT NULL))
);
CREATE INDEX credit_origins_payer ON credit_origins (payer_account);
CREATE INDEX credit_origins_account ON credit_origins (account_id) WHERE account_id IS NOT NULL;
CREATE INDEX credit_origins_order ON credit_origins (order_id, account_id) WHERE order_id IS NOT NULL;

-- Card payments that went back after keys were bought with them: what is still to be taken from those keys, or given back to them
-- because the payment came back.
CREATE TABLE reversal_walks (
  order_id uuid PRIMARY KEY,
  -- Who paid by card, and owes what is found on no key.
  account_id bigint NOT NULL,
  take_micros bigint NOT NULL DEFAULT 0 CHECK (take_micros >= 0),
  give_micros bigint NOT NULL DEFAULT 0 CHECK (give_micros >= 0),
  -- The last account that this round has seen; NULL: the round is about to begin.
  position bigint,
  -- Whether this round has seen credit that a running call holds.
  again boolean NOT NULL DEFAULT false,
  rounds integer NOT NULL DEFAULT 0,
  -- Grows with every step, so that of two at once one finds that the other was faster.
  steps integer NOT NULL DEFAULT 0,
  next_at timestamptz NOT NULL,
  -- The newest account that a walk's round began with: a key that was bought later is left for another round.
  newest bigint NOT NULL DEFAULT 0
);
CREATE INDEX reversal_walks_due ON reversal_walks (next_at);
CREATE INDEX reversal_walks_account ON reversal_walks (account_id);

-- -----------------------------------------------------------------------------------------------------------------------------------
-- Payments on chains, and the transactions of our own keys.

-- Calls that are paid on a chain: the chain decides, and a row here is what is needed to hear it, to make it decide, and to prove
-- afterwards that it did.
CREATE TABLE settlements (
  account_id bigint NOT NULL,
  call_id uuid NOT NULL,
  rail text NOT NULL,
  -- CAIP-2, such as eip155:8453
  network text NOT NULL,
  asset text NOT NULL,
  payer text NOT NULL,
  pay_to text NOT NULL,
  amount_units bigint NOT NULL,
  -- What was presented, from which anybody who holds it can settle: it can pay nobody but us.
  evidence jsonb NOT NULL,
  -- Whether the answer is stored. If not, the service runs only after the money has come.
  answered boolean NOT NULL,
  -- 0 with the chain   1 settled   2 dead: it can never settle   3 refused by us; watched until it is dead
  -- 4 lost: it was settled, and the chain forgot it
  state smallint NOT NULL DEFAULT 0,
  -- After this the chain would refuse it.
  dead_after timestamptz NOT NULL,
  -- Nobody else touches it before this.
  lease_until timestamptz NOT NULL,
  -- When the reconciler looks at it next, if nobody else did.
  next_at timestamptz NOT NULL,
  attempts integer NOT NULL DEFAULT 0,
  -- How often in a row the chain did not know the transaction.
  missed integer NOT NULL DEFAULT 0,
  reason text,
  transaction text,
  block bigint,
  created_at timestamptz NOT NULL,
  settled_at timestamptz,
  -- When the transaction was found deep enough in the chain to stay.
  final_at timestamptz,
  -- Whose lease it is.
  holder bigint,
  bucket smallint NOT NULL DEFAULT 0,
  PRIMARY KEY (account_id, call_id)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
-- What a chain has still to decide: never behind transactions that are only watched until they are final.
CREATE INDEX settlements_undecided ON settlements (network, next_at)
  WHERE final_at IS NULL AND (state IN (0, 3) OR (state = 1 AND NOT answered));
CREATE INDEX settlements_watched ON settlements (network, next_at) WHERE final_at IS NULL AND state = 1;
-- A payer's, the newest first, and not across accounts.
CREATE INDEX settlements_bought ON settlements (account_id, payer, created_at);
-- The transaction of a payment, and of a refund.
CREATE INDEX settlements_transaction ON settlements (transaction) WHERE transaction IS NOT NULL;

-- What payers have in flight: the payments of calls that were begun and that a chain has still to settle. Many signatures over the
-- same money are all good as long as none has settled, so each counts against the payer's balance beside the others.
CREATE TABLE payments_in_flight (
  account_id bigint NOT NULL,
  call_id uuid NOT NULL,
  network text NOT NULL,
  asset text NOT NULL,
  payer text NOT NULL,
  amount_units bigint NOT NULL CHECK (amount_units >= 0),
  -- Whether its service asks an upstream that charges the operator.
  costs_money boolean NOT NULL,
  -- When it was written down that the money had moved, by the database's clock. A balance that was read before counts it still.
  moved_at timestamptz,
  bucket smallint NOT NULL DEFAULT 0,
  PRIMARY KEY (account_id, call_id)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
CREATE INDEX payments_in_flight_payer ON payments_in_flight (payer);
CREATE INDEX payments_in_flight_moved ON payments_in_flight (moved_at) WHERE moved_at IS NOT NULL;

-- Money that goes back on a chain, because what it paid for could not be delivered.
CREATE TABLE refunds (
  account_id bigint NOT NULL,
  call_id uuid NOT NULL,
  network text NOT NULL,
  asset text NOT NULL,
  payee text NOT NULL,
  amount_micros bigint NOT NULL CHECK (amount_micros > 0),
  reason text NOT NULL,
  -- 0 owed   1 paid
  state smallint NOT NULL DEFAULT 0,
  transaction text,
  created_at timestamptz NOT NULL,
  next_at timestamptz NOT NULL,
  attempts integer NOT NULL DEFAULT 0,
  paid_at timestamptz,
  PRIMARY KEY (account_id, call_id)
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
CREATE INDEX refunds_due ON refunds (next_at) WHERE state = 0;
CREATE INDEX refunds_transaction ON refunds (transaction) WHERE transaction IS NOT NULL;

-- Sign-in nonces that were used, until they would be refused for their age.
CREATE TABLE sign_in_nonces (
  nonce text NOT NULL,
  address text NOT NULL,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (nonce, address)
);
CREATE INDEX sign_in_nonces_expiry ON sign_in_nonces (expires_at);

-- Transactions of our own keys. A nonce is given out together with the signed transaction that uses it, in one commit, so that none
-- is ever given twice and none is left without a transaction to fill it.
CREATE TABLE relayers (
  network text NOT NULL,
  address text NOT NULL,
  next_nonce bigint NOT NULL,
  PRIMARY KEY (network, address)
);

-- One row for each nonce that was given out.
CREATE TABLE relayer_transactions (
  network text NOT NULL,
  address text NOT NULL,
  nonce bigint NOT NULL,
  -- What it is for: one pending transaction each.
  id text NOT NULL,
  to_address text NOT NULL,
  data text NOT NULL,
  gas_limit bigint NOT NULL,
  max_fee_wei numeric NOT NULL,
  -- The signed transaction that was sent last, and the hashes of all that were sent with this nonce.
  raw text NOT NULL,
  hashes text[] NOT NULL,
  -- The hash of a transfer of nothing that fills the nonce in its stead.
  filler text,
  -- 0 pending   1 success   2 reverted   3 given up: its nonce was filled with a transfer of nothing
  state smallint NOT NULL DEFAULT 0,
  block bigint,
  created_at timestamptz NOT NULL,
  sent_at timestamptz NOT NULL,
  -- No fee is raised above this; null: no bound of its own.
  max_cost_wei numeric,
  PRIMARY KEY (network, address, nonce)
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
CREATE UNIQUE INDEX relayer_transactions_pending ON relayer_transactions (network, id) WHERE state = 0;
CREATE INDEX relayer_transactions_id ON relayer_transactions (network, id);

-- Transactions of our own keys that have an end of their own: a Solana blockhash, a Tempo validity. Each is stored before it is sent,
-- and a second one for the same purpose is made only when the first can never land any more.
CREATE TABLE ending_transactions (
  -- CAIP-2
  network text NOT NULL,
  -- What the chain knows it by: on Solana its signature.
  hash text NOT NULL,
  -- What it is for.
  id text NOT NULL,
  -- Signed, as it is sent.
  raw text NOT NULL,
  -- After this the chain takes it no more: a block height on Solana, seconds since 1970 on Tempo.
  ends_at bigint NOT NULL,
  -- For whom it opens an account at our cost.
  opens_for text,
  -- 0 on its way   1 landed for good   2 failed for good   3 over: it never landed, and never will
  state smallint NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL,
  sent_at timestamptz NOT NULL,
  -- Whose key pays for it. NULL: it was sent before there was this column.
  paid_by text,
  -- Settlements are signed once: a replica that had found none before another one's was stored, sent and over stores no second.
  only_one boolean NOT NULL DEFAULT false,
  PRIMARY KEY (network, hash)
);
CREATE UNIQUE INDEX ending_transactions_purpose ON ending_transactions (network, id) WHERE state IN (0, 1);
CREATE INDEX ending_transactions_id ON ending_transactions (network, id);
CREATE INDEX ending_transactions_pending ON ending_transactions (network, sent_at) WHERE state = 0;
CREATE INDEX ending_transactions_opened ON ending_transactions (network, created_at) WHERE opens_for IS NOT NULL AND (state IN (0, 1));
CREATE UNIQUE INDEX ending_transactions_only_one ON ending_transactions (network, id) WHERE only_one;

-- What settlements cost us that moved nothing. Whoever signs for a payment may decide what code runs when it settles, and our key
-- pays for the gas: so it is counted against them, on all replicas.
CREATE TABLE lost_gas (
  -- CAIP-2, such as eip155:8453
  network text NOT NULL,
  payer text NOT NULL,
  -- Who was to put the payer's wallet on the chain, if somebody was.
  factory text,
  -- Settlements that failed, or whose end is not known yet.
  failures integer NOT NULL,
  -- What they cost at most.
  wei numeric NOT NULL,
  -- They are forgotten a day later.
  since timestamptz NOT NULL,
  PRIMARY KEY (network, payer)
);
CREATE INDEX lost_gas_since ON lost_gas (network, since);
CREATE INDEX lost_gas_time ON lost_gas (since);

-- What our own keys have paid for transactions, a row for each key and day (UTC): how many days the rest lasts follows from it.
CREATE TABLE gas_spent (
  -- CAIP-2
  network text NOT NULL,
  -- Whose key paid: on EVM chains in small letters.
  address text NOT NULL,
  day date NOT NULL,
  transactions integer NOT NULL,
  -- Those of them whose cost the chain told.
  priced integer NOT NULL,
  -- What these cost together, in the smallest unit of what pays for transactions there.
  spent numeric NOT NULL,
  PRIMARY KEY (network, address, day)
);

-- -----------------------------------------------------------------------------------------------------------------------------------
-- Payments by card.

-- Credit that is bought by card. What the card provider says of a payment is the truth; a row here is what is needed to ask it, to
-- bring the books to match, and to hand over what was bought.
CREATE TABLE card_orders (
  id uuid PRIMARY KEY,
  -- checkout: a person pays on the provider's page. purchase: a card that the caller names. recharge: a card that is kept.
  kind text NOT NULL CHECK (kind IN ('checkout', 'purchase', 'recharge')),
  -- 0 open: it may still be paid   1 paid: its credit is granted   2 over: it was not paid and cannot be any more
  state smallint NOT NULL DEFAULT 0 CHECK (state BETWEEN 0 AND 2),
  -- Grows with every change. Who changes a row says which version the change was made from.
  version integer NOT NULL DEFAULT 0,
  amount_micros bigint NOT NULL CHECK (amount_micros > 0),
  -- What is granted: more than the amount, for packages that say so.
  credit_micros bigint NOT NULL,
  -- Whose credit it is. NULL: a new account's, which is opened when it is paid.
  account_id bigint,
  key_id bigint,
  -- The key that it buys, until it is issued: it follows from the secret that the caller holds, which is not here.
  key_lookup bigint,
  key_digest bytea,
  key_prefix text,
  -- SHA-256 of that secret.
  token_digest bytea,
  key_name text,
  email text,
  -- What the caller asked for, for orders with an idempotency key.
  request_digest bytea,
  recharge_threshold_micros bigint,
  recharge_top_up_micros bigint,
  -- What the provider calls it.
  session_id text UNIQUE,
  session_url text,
  payment_intent_id text UNIQUE,
  customer_id text,
  payment_method_id text,
  -- The provider's name for the card, the same whoever pays with it; and where the request came from, as an HMAC.
  card_fingerprint text,
  address_digest bytea,
  -- Why it was not paid, in the provider's words for machines.
  failure text,
  decline_code text,
  -- How much of the payment went back, or is in dispute; and how much of it is still in dispute.
  reversed_micros bigint NOT NULL DEFAULT 0,
  bonus_taken_micros bigint NOT NULL DEFAULT 0,
  disputed_micros bigint NOT NULL DEFAULT 0,
  -- What went back beyond the payment itself: a bank may take what was refunded. That loss is the house's.
  lost_micros bigint NOT NULL DEFAULT 0 CHECK (lost_micros >= 0),
  dispute text,
  created_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  -- When the sweeper looks at it next; NULL: only when something is heard of it.
  next_at timestamptz,
  looks integer NOT NULL DEFAULT 0,
  looked_at timestamptz,
  paid_at timestamptz,
  -- When its key was handed over for the first time.
  delivered_at timestamptz,
  -- The version of the secret that the key which an order buys follows from.
  key_secret_id text,
  -- The IPv6 site (/48) that a purchase came from, as an HMAC; NULL for IPv4.
  site_digest bytea,
  -- The retrieval token under the proof that the return page's link carries: neither of the two is here.
  page_seal bytea,
  -- Who had the key first: an agent by the retrieval token, or a person on the return page.
  delivered_to text CHECK (delivered_to IN ('agent', 'page')),
  -- Until when the card provider takes evidence in an order's dispute. NULL: there is no dispute, or none is taken any more.
  dispute_due_at timestamptz,
  -- When a charge of the order's card was last asked for; NULL: never. An order whose charge is not wanted any more ends only when
  -- nothing that was asked for can still be on its way.
  charge_asked_at timestamptz,
  -- Since when the card of a disputed order is to be forgotten wherever it is kept; NULL: it need not be, or it is.
  forget_card_since timestamptz,
  -- When what identified the payer was taken out of an order: nothing is written back, and no link to a new key is sent for it.
  erased_at timestamptz,
  -- The card that paid, as its owner knows it: the network's name in the card provider's word, and the number's last four digits.
  -- NULL: not paid, paid before this was kept, or its payer was erased.
  card_brand text,
  card_last4 text,
  CHECK (credit_micros >= amount_micros),
  CHECK (reversed_micros BETWEEN 0 AND amount_micros),
  CHECK (disputed_micros BETWEEN 0 AND reversed_micros),
  CONSTRAINT card_orders_shown_card CHECK ((card_brand IS NULL) = (card_last4 IS NULL) AND card_brand ~ '^[a-z_]{1,32}$'
    AND card_last4 ~ '^[0-9]{4}$')
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
CREATE UNIQUE INDEX card_orders_token ON card_orders (token_digest) WHERE kind = 'purchase';
CREATE INDEX card_orders_due ON card_orders (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX card_orders_account ON card_orders (account_id, created_at);
CREATE INDEX card_orders_address ON card_orders (address_digest, created_at) WHERE kind = 'purchase';
CREATE INDEX card_orders_card ON card_orders (card_fingerprint, created_at) WHERE card_fingerprint IS NOT NULL;
CREATE INDEX card_orders_time ON card_orders (created_at);
-- One charge of a kept card at a time.
CREATE UNIQUE INDEX card_orders_recharging ON card_orders (account_id) WHERE kind = 'recharge' AND state = 0;
CREATE INDEX card_orders_unfetched ON card_orders (key_secret_id) WHERE key_digest IS NOT NULL AND delivered_at IS NULL AND state < 2;
CREATE INDEX card_orders_site ON card_orders (site_digest, created_at) WHERE site_digest IS NOT NULL;
-- Checkouts that nobody tried to pay: they go after a while.
CREATE INDEX card_orders_unpaid ON card_orders (created_at) WHERE kind = 'checkout' AND state = 2 AND payment_intent_id IS NULL;
-- What the operator's page asks for.
CREATE INDEX card_orders_open ON card_orders (expires_at) WHERE state = 0;
CREATE INDEX card_orders_paid ON card_orders (paid_at) WHERE state = 1;
CREATE INDEX card_orders_disputes ON card_orders (dispute) WHERE dispute IS NOT NULL;
-- Disputes are few among orders, and /admin lists them.
CREATE INDEX card_orders_dispute ON card_orders (dispute_due_at) WHERE dispute IS NOT NULL;
CREATE INDEX card_orders_forget_card ON card_orders (forget_card_since) WHERE forget_card_since IS NOT NULL;
-- Checkouts that are open are counted by the network that opened them, whichever replica it asked.
CREATE INDEX card_orders_open_checkouts ON card_orders (address_digest) WHERE kind = 'checkout' AND state = 0;

-- What the provider has told us of, until somebody went to look. Nothing of what it said is kept but where to look.
CREATE TABLE card_events (
  id text PRIMARY KEY,
  type text NOT NULL,
  order_id uuid,
  session_id text,
  payment_intent_id text,
  -- The provider's time.
  created_at timestamptz NOT NULL,
  received_at timestamptz NOT NULL,
  -- NULL: done.
  next_at timestamptz,
  attempts integer NOT NULL DEFAULT 0
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
CREATE INDEX card_events_due ON card_events (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX card_events_time ON card_events (received_at);

-- How far the provider's own list of events was read.
CREATE TABLE card_event_cursor (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  read_until timestamptz NOT NULL
);

-- When too many cards are declined somebody is trying stolen ones: for a while nobody can buy in this way.
CREATE TABLE purchase_brake (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  paused_until timestamptz NOT NULL
);
INSERT INTO purchase_brake (paused_until) VALUES ('epoch');

-- Mailed links that give whoever paid a new key, and end the old ones.
CREATE TABLE key_links (
  id uuid PRIMARY KEY,
  order_id uuid NOT NULL REFERENCES card_orders,
  -- SHA-256 of the secret in the link, which is nowhere but in the mail.
  token_digest bytea NOT NULL UNIQUE,
  created_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  -- When it was used, and the key that it gave. Of several links of one order the first that is used ends the others.
  used_at timestamptz,
  key_id bigint,
  CHECK ((used_at IS NULL) = (key_id IS NULL))
);
CREATE INDEX key_links_order ON key_links (order_id, created_at);
-- Links are forgotten by their age, the oldest first.
CREATE INDEX key_links_created ON key_links (created_at);

-- What accounts owe: payments that went back after their credit was spent. Together they are `receivables`.
CREATE TABLE account_debts (
  account_id bigint PRIMARY KEY REFERENCES ledger_accounts,
  owed_micros bigint NOT NULL CHECK (owed_micros >= 0),
  -- Grows with every change, and names the transfers that make it.
  changes integer NOT NULL DEFAULT 0,
  since timestamptz NOT NULL
);
CREATE INDEX account_debts_owed ON account_debts (account_id) WHERE owed_micros > 0;

-- Why an account's keys are frozen; they are while there is a row.
CREATE TABLE account_freezes (
  account_id bigint NOT NULL REFERENCES ledger_accounts,
  cause text NOT NULL CHECK (cause IN ('debt', 'operator', 'reversal')),
  note text,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (account_id, cause)
);
CREATE INDEX account_freezes_reversal ON account_freezes (account_id) WHERE cause = 'reversal';

-- Balances that refill themselves from a card that is kept. In the commit of whatever took the money a trigger makes the row due; it
-- waits for nobody, and leaves a notice where somebody holds the row.
CREATE TABLE auto_recharges (
  account_id bigint PRIMARY KEY REFERENCES ledger_accounts,
  -- 0 idle   1 due: the balance is low   2 charging: an order is open   3 off
  state smallint NOT NULL CHECK (state BETWEEN 0 AND 3),
  threshold_micros bigint NOT NULL CHECK (threshold_micros > 0),
  top_up_micros bigint NOT NULL,
  -- The provider's names of the customer and of the card. NULL: the card must not be charged again.
  customer_id text NOT NULL,
  payment_method_id text,
  -- What its owner knows the card by, such as `visa 4242`.
  card_label text NOT NULL,
  email text,
  -- The order that is under way; it stays so when the recharge is switched off meanwhile.
  order_id uuid,
  -- Declines in a row that may pass.
  soft_failures smallint NOT NULL DEFAULT 0,
  -- When one that is due is tried, and what it waits for. NULL: at once.
  next_at timestamptz,
  waiting_for text CHECK (waiting_for IN ('decline', 'spacing', 'daily_limit', 'thaw')),
  off_reason text,
  last_charged_at timestamptz,
  created_at timestamptz NOT NULL,
  changed_at timestamptz NOT NULL,
  -- The provider's name for the kept card.
  card_fingerprint text,
  -- What its owner agreed to on the payment page.
  agreed_threshold_micros bigint,
  agreed_top_up_micros bigint,
  -- Whom a charge is told of after its mail was moved away.
  former_addresses jsonb NOT NULL DEFAULT '[]',
  CHECK (top_up_micros >= threshold_micros),
  CHECK ((state = 3) = (off_reason IS NOT NULL)),
  CHECK (state = 3 OR payment_method_id IS NOT NULL),
  CHECK (CASE state WHEN 2 THEN order_id IS NOT NULL WHEN 3 THEN true ELSE order_id IS NULL END),
  CHECK (state = 1 OR (next_at IS NULL AND waiting_for IS NULL)),
  CHECK ((next_at IS NULL) = (waiting_for IS NULL))
) WITH (fillfactor = 80);
CREATE INDEX auto_recharges_due ON auto_recharges (next_at) WHERE state = 1;
CREATE INDEX auto_recharges_card ON auto_recharges (card_fingerprint) WHERE payment_method_id IS NOT NULL;

-- Accounts that a debit found low while somebody held their recharge. A job makes it due.
CREATE TABLE auto_recharge_notices (
  account_id bigint NOT NULL
);

-- -----------------------------------------------------------------------------------------------------------------------------------
-- What owners of accounts are told, and tasks of A2A.

-- What happened to an account: kept for thirty days, whether or not a webhook took it. Rows about money are written in the commit
-- that moves it. A trigger on this table hands each row to the account's webhooks.
CREATE TABLE account_events (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  account_id bigint NOT NULL,
  -- Set: the event concerns this webhook alone, such as a balance below its threshold.
  webhook_id uuid,
  type text NOT NULL,
  data jsonb NOT NULL,
  -- Money has moved. Such events keep their room in a webhook's day when there are too many others.
  about_money boolean NOT NULL,
  created_at timestamptz NOT NULL
);
CREATE INDEX account_events_listed ON account_events (account_id, created_at, id);
CREATE INDEX account_events_time ON account_events (created_at);

-- Where the owner of an account is told of what happens to it.
CREATE TABLE webhooks (
  id uuid PRIMARY KEY,
  account_id bigint NOT NULL,
  url text NOT NULL,
  -- The types of events that go there.
  events text[] NOT NULL,
  -- For `balance.low`: below it the balance is low; and whether that was told since it was last above.
  low_below_micros bigint CHECK (low_below_micros > 0),
  low_told boolean NOT NULL DEFAULT false,
  -- Who is told when it is switched off for failing.
  email text,
  -- Encrypted.
  sealed_secret text NOT NULL,
  -- Neither of the two is read any more: `former_secrets` took their place.
  sealed_secret_before text,
  before_until timestamptz,
  created_at timestamptz NOT NULL,
  -- Nothing is sent there before: somebody is sending, or it failed a moment ago.
  not_before timestamptz,
  -- Failures in a row, and since when.
  failures integer NOT NULL DEFAULT 0,
  failing_since timestamptz,
  disabled_at timestamptz,
  disabled_because text CHECK (disabled_because IN ('failing', 'gone', 'secret_lost', 'owner')),
  -- Events since then count as missed when no message was written for them. NULL: since it was registered.
  hears_since timestamptz,
  -- Secrets of a webhook that others replaced, the newest first: each signs too until the time that its owner was told. An element
  -- holds `sealed`, as in sealed_secret, and `until`, in ISO 8601. They stand in the webhook's own row, so whoever reads its secret
  -- reads these as of the same moment.
  former_secrets jsonb NOT NULL DEFAULT '[]'
    CHECK (jsonb_typeof(former_secrets) = 'array' AND jsonb_array_length(former_secrets) <= 5),
  CHECK ((disabled_at IS NULL) = (disabled_because IS NULL))
);
CREATE INDEX webhooks_account ON webhooks (account_id);

-- One event for one webhook, written in the commit of what it tells of. Its id is the message's, however often it is sent.
CREATE TABLE webhook_deliveries (
  id uuid PRIMARY KEY,
  webhook_id uuid NOT NULL REFERENCES webhooks ON DELETE CASCADE,
  type text NOT NULL,
  body text NOT NULL,
  created_at timestamptz NOT NULL,
  -- When it is sent next, or when whoever is at it has had their time; NULL: it was delivered, or given up.
  next_at timestamptz,
  attempts smallint NOT NULL DEFAULT 0,
  -- Since its owner asked for it again; at first since it was written.
  wanted_at timestamptz NOT NULL,
  delivered_at timestamptz,
  given_up_at timestamptz,
  -- What the last attempt got: a status of HTTP, or a word of ours.
  last_result text,
  -- The event that a message tells of; NULL: a test message, or one that was written before there was a log.
  event_id uuid,
  CHECK (num_nonnulls(next_at, delivered_at, given_up_at) = 1)
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook_id, next_at) WHERE next_at IS NOT NULL;
CREATE INDEX webhook_deliveries_listed ON webhook_deliveries (webhook_id, created_at);
CREATE INDEX webhook_deliveries_time ON webhook_deliveries (created_at);
CREATE UNIQUE INDEX webhook_deliveries_event ON webhook_deliveries (webhook_id, event_id) WHERE event_id IS NOT NULL;

-- Mail on its way out. A row is written in the commit of what it tells of; a job sends it, at least once.
CREATE TABLE mails (
  -- Follows from the cause: the same cause is one mail.
  id uuid PRIMARY KEY,
  recipient text NOT NULL,
  subject text NOT NULL,
  body text NOT NULL,
  created_at timestamptz NOT NULL,
  -- When it is tried next, or when whoever is at it has had their time; NULL: it was sent, or given up.
  next_at timestamptz,
  attempts smallint NOT NULL DEFAULT 0,
  sent_at timestamptz,
  given_up_at timestamptz,
  -- Forgotten as soon as the mail is out of our hands, because a secret stands in it.
  secret boolean NOT NULL DEFAULT false,
  CHECK (num_nonnulls(next_at, sent_at, given_up_at) = 1)
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
CREATE INDEX mails_due ON mails (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX mails_time ON mails (created_at);

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
  state text NOT NULL CHECK (state IN ('input-required', 'working', 'charging', 'completed', 'failed', 'canceled')),
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
  -- Who works on it. The same message may be delivered several times at once; only one of those that work on it may write an end that
  -- bought nothing.
  worker uuid,
  CHECK ((call_id IS NULL) = (call_account_id IS NULL)),
  CHECK (state <> 'completed' OR call_id IS NOT NULL)
);
CREATE INDEX a2a_tasks_of ON a2a_tasks (account_id, updated_at DESC, id DESC) WHERE account_id IS NOT NULL;
CREATE INDEX a2a_tasks_expiry ON a2a_tasks (expires_at);
-- Those that bought nothing are bounded in number.
CREATE INDEX a2a_tasks_unpaid ON a2a_tasks (expires_at) WHERE call_id IS NULL;

-- -----------------------------------------------------------------------------------------------------------------------------------
-- What operators do, and what they look at.

-- Every act of an operator. Only ever added to: an act that is told wrong is answered by another act.
CREATE TABLE operator_acts (
  -- In the order in which they were done.
  number bigint NOT NULL GENERATED ALWAYS AS IDENTITY UNIQUE,
  -- Also the id of the transfer that the act makes, where it makes one under a name of its own.
  id uuid PRIMARY KEY,
  at timestamptz NOT NULL,
  -- The name that stands before the token in ADMIN_TOKENS.
  actor text NOT NULL,
  act text NOT NULL CHECK (act IN ('freeze', 'unfreeze', 'grant', 'refund_order', 'refund_call', 'mail_key', 'refund_payment',
    'lift_bounds', 'set_service')),
  account_id bigint NOT NULL REFERENCES ledger_accounts,
  -- The key that paid for what is refunded.
  key_id bigint,
  order_id uuid,
  call_id uuid,
  amount_micros bigint CHECK (amount_micros > 0),
  reason text NOT NULL,
  transfer_id uuid,
  -- SHA-256 of the Idempotency-Key: the same key is the same act.
  idempotency_digest bytea NOT NULL UNIQUE,
  -- SHA-256 of what was asked for, and by whom.
  request_digest bytea NOT NULL,
  -- A running digest over the acts of operators: SHA-256 of the digest before it and of its own content. A row that somebody with the
  -- database changes or removes shows in the next one.
  digest bytea NOT NULL CHECK (length(digest) = 32),
  CONSTRAINT operator_acts_amount CHECK ((act IN ('freeze', 'unfreeze', 'mail_key', 'lift_bounds', 'set_service'))
    = (amount_micros IS NULL)),
  CONSTRAINT operator_acts_call_named CHECK ((act IN ('refund_call', 'refund_payment')) = (call_id IS NOT NULL)),
  CONSTRAINT operator_acts_order CHECK ((act IN ('refund_order', 'mail_key')) = (order_id IS NOT NULL)),
  CONSTRAINT operator_acts_transfer CHECK ((act IN ('grant', 'refund_call', 'refund_payment')) = (transfer_id IS NOT NULL))
);
CREATE INDEX operator_acts_account ON operator_acts (account_id, number);
CREATE UNIQUE INDEX operator_acts_call ON operator_acts (account_id, call_id) WHERE call_id IS NOT NULL;
-- What an operator gave alone in the last 24 hours is counted with every gift.
CREATE INDEX operator_acts_actor ON operator_acts (actor, at);

-- The last act's number and digest. Acts are written in turns: whoever writes one holds this row.
CREATE TABLE operator_acts_head (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  number bigint NOT NULL,
  digest bytea NOT NULL CHECK (length(digest) = 32)
);
INSERT INTO operator_acts_head (number, digest) VALUES (0, decode(repeat('00', 32), 'hex'));

-- How an act ended that needs somebody else, the card provider, to do its part. An act of that kind without a row here is under way,
-- or was cut off: it is safe to repeat.
CREATE TABLE operator_act_outcomes (
  act_id uuid PRIMARY KEY REFERENCES operator_acts,
  at timestamptz NOT NULL,
  status text NOT NULL,
  refund_id text
);

-- Refunds and grants that wait for a second operator. The act itself is written when that operator agrees.
CREATE TABLE operator_proposals (
  id uuid PRIMARY KEY,
  at timestamptz NOT NULL,
  actor text NOT NULL,
  act text NOT NULL CHECK (act IN ('refund_order', 'refund_call', 'refund_payment', 'grant')),
  account_id bigint NOT NULL,
  order_id uuid,
  call_id uuid,
  amount_micros bigint NOT NULL CHECK (amount_micros > 0),
  reason text NOT NULL,
  -- SHA-256 of the Idempotency-Key, and of what was asked for.
  idempotency_digest bytea NOT NULL UNIQUE,
  request_digest bytea NOT NULL,
  -- How it ended, and by whom. NULL: it waits.
  ended text CHECK (ended IN ('approved', 'declined')),
  ended_by text,
  ended_at timestamptz,
  CHECK (ended_by IS DISTINCT FROM actor OR ended = 'declined'),
  CHECK (num_nonnulls(ended, ended_by, ended_at) IN (0, 3)),
  -- Grants name neither an order nor a call.
  CHECK (num_nonnulls(order_id, call_id) = CASE act WHEN 'grant' THEN 0 ELSE 1 END)
);
CREATE INDEX operator_proposals_waiting ON operator_proposals (at) WHERE ended IS NULL;

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

-- Sign-ins of operators at a provider (OpenID Connect).
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

-- Whether the tokens of ADMIN_TOKENS open the page. Whoever changes a role holds this row, so that of two who take each other's role
-- at once the second sees what the first did.
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

-- The last number and digest of the trail. Whoever writes in it holds this row.
CREATE TABLE operator_trail_head (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  number bigint NOT NULL,
  digest bytea NOT NULL CHECK (length(digest) = 32)
);
INSERT INTO operator_trail_head (number, digest) VALUES (0, decode(repeat('00', 32), 'hex'));

-- Persons who were erased, by a digest that the server's secret keys: nobody can be read out of it, and whoever is found in a
-- restored database is known again.
CREATE TABLE erasures (
  id uuid PRIMARY KEY,
  -- The version of the secret, and HMAC-SHA-256 of the address.
  secret_id text NOT NULL,
  digest bytea NOT NULL CHECK (length(digest) = 32),
  began_at timestamptz NOT NULL,
  -- NULL: it was cut off, and goes on when it is asked for again.
  ended_at timestamptz,
  -- The person's accounts, which nothing else leads to once it is half done.
  accounts bigint[] NOT NULL,
  -- The card provider's names of the person, until the provider has forgotten them.
  customers text[] NOT NULL,
  CHECK (ended_at IS NULL OR cardinality(customers) = 0)
);
CREATE UNIQUE INDEX erasures_one_open ON erasures (digest) WHERE ended_at IS NULL;

-- What is sold, version by version: each content of the file that says it, and each set of operators' rules for the services that the
-- shop ships with. Only ever added to.
CREATE TABLE stock_versions (
  number bigint PRIMARY KEY CHECK (number > 0),
  kind text NOT NULL CHECK (kind IN ('file', 'rules')),
  -- JSON. It names environment variables that hold secrets, and holds none.
  content text NOT NULL,
  digest bytea NOT NULL,
  made_at timestamptz NOT NULL,
  made_by text NOT NULL,
  -- The act of the operator who made the rules.
  act_id uuid UNIQUE REFERENCES operator_acts,
  CHECK (digest = sha256(convert_to(content, 'UTF8'))),
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

-- When something that callers see could not be used: a service, a way to pay, a chain, or the server itself. One row a spell; the
-- page /status reads nothing else.
CREATE TABLE status_spells (
  component text NOT NULL CHECK (length(component) BETWEEN 1 AND 200),
  began_at timestamptz NOT NULL,
  -- The last time that a replica found it so.
  seen_at timestamptz NOT NULL,
  -- Null while it lasts.
  ended_at timestamptz,
  PRIMARY KEY (component, began_at),
  CHECK (seen_at >= began_at),
  CHECK (ended_at >= began_at)
);
CREATE UNIQUE INDEX status_spells_open ON status_spells (component) WHERE ended_at IS NULL;
CREATE INDEX status_spells_by_end ON status_spells (ended_at);

-- When any replica last looked: a long gap is one in which no server ran.
CREATE TABLE status_looks (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  looked_at timestamptz NOT NULL
);

-- -----------------------------------------------------------------------------------------------------------------------------------
-- Whether the database is as new as the world around it.

-- Where the database ran when a server saw it last.
CREATE TABLE database_lineage (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  -- PostgreSQL's name for the cluster (`system_identifier`).
  cluster text NOT NULL,
  -- Counts up with each promotion and each restore to a point in time.
  timeline integer NOT NULL
);

-- Times at which the database was found to know less than chains, the card provider and customers do, because it was restored:
-- nothing is sold then, and no job runs, until `npm run recover` has found what was sold since.
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

-- -----------------------------------------------------------------------------------------------------------------------------------
-- What the services know from elsewhere, and what asking for it takes.

-- Lists that others publish and services look things up in: sanctions, mixing services. A job fetches them.
CREATE TABLE data_lists (
  name text PRIMARY KEY,
  -- The list in use; all NULL until the first was fetched.
  published_at timestamptz,
  -- When its publisher last said that this is the list.
  confirmed_at timestamptz,
  -- Of the file as it came.
  sha256 bytea CHECK (length(sha256) = 32),
  parties integer CHECK (parties > 0),
  -- What was read from it: JSON, compressed.
  content bytea,
  -- Where it came from, as answers show it.
  source jsonb,
  -- When it is fetched next; while it is being fetched, when whoever does so has had their time.
  next_at timestamptz NOT NULL,
  -- Fetches in a row that failed, and why the last one did.
  failures integer NOT NULL DEFAULT 0,
  failure text,
  CHECK (num_nulls(published_at, confirmed_at, sha256, parties, content, source) IN (0, 6))
);
CREATE INDEX data_lists_due ON data_lists (next_at);

-- What became of the official pages that the rules of the compliance base lead to, since the base was last written. A job reads each
-- about once a week. No text of a page is kept, only the hash of what a reader sees of it.
CREATE TABLE law_pages (
  -- As the rule has it.
  url text PRIMARY KEY,
  -- The day on which the base was last written. With a later one everything below starts anew.
  rules_as_of date NOT NULL,
  -- Of the visible text, when it was first read after that day.
  first_sha256 bytea CHECK (length(first_sha256) = 32),
  first_at timestamptz,
  -- When a later reading had the same text. Before, a text that differs each time cannot be told from one that has changed.
  confirmed_at timestamptz,
  -- Since when two readings in a row have differed before any was confirmed.
  unsteady_since timestamptz,
  -- Since when it has another text than the first; NULL while it has the same.
  changed_at timestamptz,
  -- When it was last read.
  read_at timestamptz,
  -- Attempts in a row that failed, since when, the HTTP status of the last where it had one, and why it failed in words of ours.
  failures integer NOT NULL DEFAULT 0,
  failing_since timestamptz,
  status smallint,
  failure text,
  -- When it is read next; while it is being read, when whoever does so has had their time.
  next_at timestamptz NOT NULL,
  CHECK (num_nulls(first_sha256, first_at) IN (0, 2)),
  CHECK (confirmed_at IS NULL OR first_at IS NOT NULL),
  CHECK (changed_at IS NULL OR confirmed_at IS NOT NULL),
  CHECK ((failures = 0) = (failing_since IS NULL) AND (failures = 0) = (failure IS NULL))
);
CREATE INDEX law_pages_due ON law_pages (next_at);

-- What each process has used up of a source's burst, so that the process that follows it does not begin with a full one.
CREATE TABLE source_budgets (
  process uuid NOT NULL,
  source text NOT NULL,
  -- Requests that were missing from the process's share of the burst.
  missing double precision NOT NULL CHECK (missing > 0),
  -- When that was so: a process that lives writes it every second.
  at timestamptz NOT NULL,
  PRIMARY KEY (process, source)
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);

-- What a source that costs money by use has cost the operator, by day (UTC): all requests that it told the measure of.
CREATE TABLE source_costs (
  day date NOT NULL,
  source text NOT NULL,
  requests bigint NOT NULL CHECK (requests > 0),
  cost_micros bigint NOT NULL CHECK (cost_micros >= 0),
  PRIMARY KEY (day, source)
);

-- -----------------------------------------------------------------------------------------------------------------------------------
-- What the house keeps for payers: wallets, and identities.

-- Wallets that the house keeps for payers. `owner` is whoever paid: a ledger account or a wallet that signed (see custody/owner.ts).
CREATE TABLE managed_wallets (
  id uuid PRIMARY KEY,
  owner text NOT NULL,
  -- The payer's own name for the agent.
  agent_id text NOT NULL,
  agent_name text,
  purpose text,
  networks text[] NOT NULL,
  -- SHA-256 of the wallet's secret, which is random: a slow hash would protect nothing.
  secret_digest bytea NOT NULL CHECK (length(secret_digest) = 32),
  created_by_call text NOT NULL,
  created_at timestamptz NOT NULL,
  -- The row of a deleted wallet stays, without its keys.
  deleted_at timestamptz,
  -- Ids of agents are compared without regard to case: `agent_key` is the id as words/agent-id.ts folds it. It is NULL in rows from
  -- before, which may differ from each other by case alone, and are found by `agent_id`.
  agent_key text
);
CREATE UNIQUE INDEX managed_wallets_agent ON managed_wallets (owner, agent_id) WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX managed_wallets_agent_key ON managed_wallets (owner, agent_key) WHERE deleted_at IS NULL;

-- A wallet's private keys: one for all EVM chains, one for Solana. Encrypted (see custody/envelope.ts), or destroyed.
CREATE TABLE managed_wallet_keys (
  wallet_id uuid NOT NULL REFERENCES managed_wallets,
  kind text NOT NULL CHECK (kind IN ('evm', 'solana')),
  address text NOT NULL,
  kek_id text,
  wrapped_data_key bytea,
  ciphertext bytea,
  PRIMARY KEY (wallet_id, kind),
  CHECK (num_nulls(kek_id, wrapped_data_key, ciphertext) IN (0, 3))
);
CREATE INDEX managed_wallet_keys_kek ON managed_wallet_keys (kek_id) WHERE kek_id IS NOT NULL;

-- Who did what to a wallet. Only ever added to. An export stands here before the key leaves the house.
CREATE TABLE managed_wallet_events (
  id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  wallet_id uuid NOT NULL REFERENCES managed_wallets,
  at timestamptz NOT NULL,
  action text NOT NULL CHECK (action IN ('created', 'extended', 'secret_renewed', 'exported', 'deleted', 'refused')),
  -- `call:<id>`, `key:<id>`, `wallet-secret`, or what was refused
  actor text NOT NULL,
  request_id text
);
CREATE INDEX managed_wallet_events_wallet ON managed_wallet_events (wallet_id, id);

-- Identities registered on chain for payers. The row is there before the first transaction is sent.
CREATE TABLE agent_identities (
  owner text NOT NULL,
  agent_id text NOT NULL,
  agent_uri text NOT NULL,
  -- To whom the identity goes; NULL: the registrar keeps it.
  holder text,
  -- What the transactions' ids begin with: the call that first set out to register it.
  transaction_key text NOT NULL,
  -- The call that is at it, and since when; NULL: nobody is.
  claimed_by text NOT NULL,
  claimed_at timestamptz,
  token_id numeric(78),
  register_transaction text,
  transfer_transaction text,
  completed_at timestamptz,
  agent_key text,
  PRIMARY KEY (owner, agent_id),
  CHECK (completed_at IS NULL OR (token_id IS NOT NULL AND (holder IS NULL) = (transfer_transaction IS NULL)))
);
CREATE UNIQUE INDEX agent_identities_agent_key ON agent_identities (owner, agent_key);

-- Calls whose payment is about to settle on a chain, and that will then make a wallet or an identity. While such a row lasts, no
-- other payment of the same buyer settles for the same agent.
CREATE TABLE agent_id_claims (
  kind text NOT NULL CHECK (kind IN ('wallet', 'identity')),
  owner text NOT NULL,
  agent_key text NOT NULL,
  call_id text NOT NULL,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (kind, owner, agent_key)
);
CREATE INDEX agent_id_claims_expiry ON agent_id_claims (expires_at);

-- -----------------------------------------------------------------------------------------------------------------------------------
-- Devices that report, what they have reported, and who may read it.

-- A fleet is the owner's who named it first.
CREATE TABLE device_fleets (
  name text PRIMARY KEY,
  owner bigint NOT NULL
);

-- Devices that report.
CREATE TABLE devices (
  no bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
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
  -- How many different reports were kept.
  refusals bigint NOT NULL DEFAULT 0,
  CHECK ((lat IS NULL) = (lon IS NULL))
) WITH (fillfactor = 50);
CREATE INDEX devices_owner ON devices (owner, no);
CREATE INDEX devices_fleet ON devices (fleet) WHERE fleet IS NOT NULL;
-- Lists the fleets that everybody may read to whoever asked for none.
CREATE INDEX devices_public_fleets ON devices (no) WHERE public AND revoked_at IS NULL AND fleet IS NOT NULL;

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
CREATE INDEX device_offers_expiry ON device_offers (expires_at);

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

-- Reports by MQTT that were acknowledged and could not be taken, as they came: for the owner to see, and to be taken later where that
-- can be.
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

-- -----------------------------------------------------------------------------------------------------------------------------------
-- The yield vault, its keeper, and the Solana yield portal.

-- How far the yield vault's events were read, by which a holder's yield is told from their own entry. All that follows from them can
-- be read from the chain again.
CREATE TABLE yield_index (
  vault text PRIMARY KEY,
  -- The blocks below this one have been read.
  next_block bigint NOT NULL CHECK (next_block >= 0),
  -- Of the block before; NULL: none has been read.
  last_hash text
);

-- Blocks that were the chain's when they were read: where a chain that took another way left the old one is found by them.
CREATE TABLE yield_marks (
  vault text NOT NULL,
  block_number bigint NOT NULL,
  block_hash text NOT NULL,
  PRIMARY KEY (vault, block_number)
);

-- Shares that came to be, changed hands or went.
CREATE TABLE yield_moves (
  vault text NOT NULL,
  block_number bigint NOT NULL,
  log_index integer NOT NULL,
  kind text NOT NULL CHECK (kind IN ('deposit', 'withdraw', 'in_kind', 'transfer', 'fee')),
  at timestamptz NOT NULL,
  -- NULL: the shares were made, or burned.
  from_wallet text,
  to_wallet text,
  shares numeric(78) NOT NULL CHECK (shares > 0),
  -- USDC units that were paid or received. NULL: the event does not say.
  assets numeric(78),
  -- USDC units, and the shares that they are the price of: those of the entry fee are among them. NULL: no price was told.
  priced_assets numeric(78),
  priced_shares numeric(78) CHECK (priced_shares > 0),
  PRIMARY KEY (vault, block_number, log_index),
  CHECK (num_nulls(assets, priced_assets, priced_shares) IN (0, 3)),
  CHECK (num_nulls(from_wallet, to_wallet) <= 1)
);
CREATE INDEX yield_moves_from ON yield_moves (vault, from_wallet, block_number, log_index) WHERE from_wallet IS NOT NULL;
CREATE INDEX yield_moves_to ON yield_moves (vault, to_wallet, block_number, log_index) WHERE to_wallet IS NOT NULL;
CREATE INDEX yield_moves_priced ON yield_moves (vault, block_number, log_index) WHERE priced_shares IS NOT NULL;

-- Rates and holdings every few minutes, for charts.
CREATE TABLE yield_samples (
  vault text NOT NULL,
  -- The beginning of the few minutes.
  at timestamptz NOT NULL,
  block_number bigint NOT NULL,
  -- USDC units.
  total_assets numeric(78) NOT NULL,
  -- USDC units of 10^30 shares.
  priced_assets numeric(78) NOT NULL,
  active text NOT NULL,
  -- By protocol: { "apyPercent": number or null, "assets": USDC units as text }.
  protocols jsonb NOT NULL,
  idle numeric(78) NOT NULL,
  PRIMARY KEY (vault, at)
);
CREATE INDEX yield_samples_block ON yield_samples (vault, block_number);

-- The keeper of the yield vault: who of the replicas looks now, and what came of the last look.
CREATE TABLE yield_keeper (
  -- Its address in small letters.
  vault text PRIMARY KEY,
  -- A look that has not ended by then is nobody's any more.
  looked_until timestamptz NOT NULL,
  -- Grows with each look: what an earlier one still writes is left out.
  look bigint NOT NULL,
  -- NULL: none has ended yet.
  reported_at timestamptz,
  -- As `yield/keeper/report.ts` shapes it.
  report jsonb
);

-- What the keeper moved among the protocols, as the vault's events told it.
CREATE TABLE yield_keeper_moves (
  vault text NOT NULL,
  block_number bigint NOT NULL,
  log_index integer NOT NULL,
  at timestamptz NOT NULL,
  transaction_hash text NOT NULL,
  from_protocol text NOT NULL,
  to_protocol text NOT NULL,
  -- USDC units: that left the one, and that came to count in the other.
  assets numeric(78) NOT NULL,
  received numeric(78) NOT NULL,
  PRIMARY KEY (vault, block_number, log_index)
);
CREATE INDEX yield_keeper_moves_at ON yield_keeper_moves (vault, at);

-- Why a keeper of ours makes a move, written before it is sent: several may be tried until one is made.
CREATE TABLE yield_keeper_reasons (
  vault text NOT NULL,
  -- From when the contract allows it: seconds since 1970, of the chain's clock.
  allowed_at bigint NOT NULL,
  noted_at timestamptz NOT NULL,
  from_protocol text NOT NULL,
  to_protocol text NOT NULL,
  assets numeric(78) NOT NULL,
  -- As `MoveReason` of `yield/keeper/report.ts` shapes it.
  reason jsonb NOT NULL,
  PRIMARY KEY (vault, from_protocol, to_protocol, assets, allowed_at)
);
CREATE INDEX yield_keeper_reasons_time ON yield_keeper_reasons (vault, noted_at);

-- What the keeper has read of the three protocols, one row for each five minutes: how their indices grew tells what they paid.
CREATE TABLE yield_index_samples (
  vault text NOT NULL,
  -- The time of the block that was read.
  at timestamptz NOT NULL,
  block_number bigint NOT NULL,
  -- By protocol: { "index": what a unit that was lent at the beginning is worth, as text, "utilization": 0 to 1 }; null: not read.
  protocols jsonb NOT NULL,
  PRIMARY KEY (vault, at)
);

-- Deposits and withdrawals of wallets in the Solana yield portal, each as the chain shows it. Amounts in its tables are units of six
-- places: USDC as it is, and of the reserve's collateral token.
CREATE TABLE solana_yield_moves (
  -- Of the transaction, base58.
  signature text PRIMARY KEY,
  wallet text NOT NULL,
  kind text NOT NULL CHECK (kind IN ('deposit', 'withdrawal')),
  slot bigint NOT NULL CHECK (slot >= 0),
  -- The block's time; NULL: the chain does not say.
  at timestamptz,
  -- What a deposit minted, or a withdrawal burned.
  collateral bigint NOT NULL CHECK (collateral > 0),
  -- What a deposit paid into the reserve, or a withdrawal took out of it, before any fee.
  usdc bigint NOT NULL CHECK (usdc > 0),
  -- What the wallet's own account of the collateral token held before and after the transaction.
  held_before bigint NOT NULL CHECK (held_before >= 0),
  held_after bigint NOT NULL CHECK (held_after >= 0),
  -- What the same transaction paid to the treasury.
  fee bigint NOT NULL CHECK (fee >= 0),
  -- Whether the chain can still take it back.
  final boolean NOT NULL,
  found_at timestamptz NOT NULL
);
CREATE INDEX solana_yield_moves_wallet ON solana_yield_moves (wallet, slot);
CREATE INDEX solana_yield_moves_open ON solana_yield_moves (found_at) WHERE NOT final;

-- Deposits that wallets claim and that the chain could not be asked about yet. A wallet that claims another's transaction keeps
-- nobody from claiming it too.
CREATE TABLE solana_yield_claims (
  signature text NOT NULL,
  wallet text NOT NULL,
  -- What the caller says it was; compared, and never credited. NULL: the caller did not say.
  claimed_usdc bigint CHECK (claimed_usdc > 0),
  state text NOT NULL CHECK (state IN ('pending', 'confirmed', 'refused', 'given_up')),
  -- Why it was refused or given up.
  reason text,
  claimed_at timestamptz NOT NULL,
  -- When it is looked at next; while it is being looked at, when whoever does so has had their time.
  next_at timestamptz NOT NULL,
  PRIMARY KEY (signature, wallet)
);
CREATE INDEX solana_yield_claims_due ON solana_yield_claims (next_at) WHERE state = 'pending';
CREATE INDEX solana_yield_claims_wallet ON solana_yield_claims (wallet) WHERE state = 'pending';
CREATE INDEX solana_yield_claims_over ON solana_yield_claims (claimed_at) WHERE state <> 'pending';

-- What wallets paid to the treasury ahead of a deposit.
CREATE TABLE solana_yield_fees (
  signature text PRIMARY KEY,
  wallet text NOT NULL,
  usdc bigint NOT NULL CHECK (usdc > 0),
  slot bigint NOT NULL CHECK (slot >= 0),
  at timestamptz NOT NULL,
  -- waiting: its deposit may still come. unused: it did not, and the fee is due back.
  state text NOT NULL CHECK (state IN ('waiting', 'used', 'unused', 'refunded')),
  -- Why it is due back.
  reason text,
  deposit_signature text UNIQUE,
  refund_signature text,
  next_at timestamptz NOT NULL,
  -- How far the wallet's transactions have been looked through for the deposit; NULL: from the newest on.
  looked_before text,
  -- When it became due back; NULL: it never did. It is still looked at for a while, since its deposit may come late.
  unused_at timestamptz,
  -- The slot in which the look began that `looked_before` goes on with; NULL: none is under way.
  looked_from bigint,
  CHECK ((state = 'used') = (deposit_signature IS NOT NULL)),
  CHECK ((state = 'refunded') = (refund_signature IS NOT NULL))
);
CREATE INDEX solana_yield_fees_wallet ON solana_yield_fees (wallet, slot);
CREATE INDEX solana_yield_fees_unused ON solana_yield_fees (at) WHERE state = 'unused';
CREATE INDEX solana_yield_fees_due ON solana_yield_fees (next_at) WHERE state IN ('waiting', 'unused');

-- How far the transactions of the treasury's token account have been read, the newest first.
CREATE TABLE solana_yield_walks (
  account text PRIMARY KEY,
  -- Everything up to this one has been read. NULL: nothing.
  read_to text,
  -- The newest one of the walk that is under way, and how far down it has come. NULL: none is.
  head text,
  below text,
  -- Grows with each step: who comes second from the same place changes nothing.
  step bigint NOT NULL,
  CHECK ((head IS NULL) = (below IS NULL))
);

-- Transactions that the walk came by and nobody has looked at yet.
CREATE TABLE solana_yield_unread (
  signature text PRIMARY KEY,
  slot bigint NOT NULL,
  listed_at timestamptz NOT NULL,
  next_at timestamptz NOT NULL,
  -- How often a transaction was asked for that the node listed and did not show.
  tries integer NOT NULL DEFAULT 0
);
CREATE INDEX solana_yield_unread_due ON solana_yield_unread (next_at);

-- Bundles that were built for a key of the caller's: the same key, wallet and amount gets another one only when they expired.
CREATE TABLE solana_yield_intents (
  idempotency_key uuid NOT NULL,
  wallet text NOT NULL,
  usdc bigint NOT NULL CHECK (usdc > 0),
  id uuid NOT NULL UNIQUE,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (idempotency_key, wallet, usdc)
);
CREATE INDEX solana_yield_intents_over ON solana_yield_intents (expires_at);
