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

-- The retrieval token under the proof that the return page's link carries: neither of the two is here.
ALTER TABLE card_orders ADD COLUMN page_seal bytea;
-- Who had the key first: an agent by the retrieval token, or a person on the return page.
ALTER TABLE card_orders ADD COLUMN delivered_to text CHECK (delivered_to IN ('agent', 'page'));

-- Forgotten as soon as the mail is out of our hands, because a secret stands in it.
ALTER TABLE mails ADD COLUMN secret boolean NOT NULL DEFAULT false;

-- An operator may send such a link.
ALTER TABLE operator_acts DROP CONSTRAINT operator_acts_act_check;
ALTER TABLE operator_acts ADD CONSTRAINT operator_acts_act_check
  CHECK (act IN ('freeze', 'unfreeze', 'grant', 'refund_order', 'refund_call', 'mail_key'));
ALTER TABLE operator_acts DROP CONSTRAINT operator_acts_check;
ALTER TABLE operator_acts ADD CONSTRAINT operator_acts_amount
  CHECK ((act IN ('freeze', 'unfreeze', 'mail_key')) = (amount_micros IS NULL));
ALTER TABLE operator_acts DROP CONSTRAINT operator_acts_check1;
ALTER TABLE operator_acts ADD CONSTRAINT operator_acts_order
  CHECK ((act IN ('refund_order', 'mail_key')) = (order_id IS NOT NULL));
