-- Where the credit comes from that a key was bought with. A card payment that goes back is followed by it into keys that were
-- bought with it, and into those that they bought; trial credit stays it by it.
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
  taken_micros bigint NOT NULL DEFAULT 0 CHECK (taken_micros BETWEEN 0 AND amount_micros),
  -- Set once the price of the key went back: its payer has that credit again.
  ended boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (call_id, nth),
  CHECK (NOT (trial AND order_id IS NOT NULL))
);
CREATE INDEX credit_origins_payer ON credit_origins (payer_account);
CREATE INDEX credit_origins_account ON credit_origins (account_id) WHERE account_id IS NOT NULL;
CREATE INDEX credit_origins_order ON credit_origins (order_id, account_id) WHERE order_id IS NOT NULL;

-- Card payments that went back after keys were bought with them: what is still to be taken from those keys, or given back to
-- them because the payment came back.
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
  next_at timestamptz NOT NULL
);
CREATE INDEX reversal_walks_due ON reversal_walks (next_at);
CREATE INDEX reversal_walks_account ON reversal_walks (account_id);

-- reversal: the credit that bought the key was taken back, and nothing else is on it.
ALTER TABLE account_freezes DROP CONSTRAINT account_freezes_cause_check;
ALTER TABLE account_freezes ADD CONSTRAINT account_freezes_cause_check CHECK (cause IN ('debt', 'operator', 'reversal'));
CREATE INDEX account_freezes_reversal ON account_freezes (account_id) WHERE cause = 'reversal';
