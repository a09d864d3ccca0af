-- Who bought the first key of those that were bought with a key's credit: the account or the wallet. Bounds are counted by
-- it, so that a key which buys the next one gains nothing. An account without a row is its own root buyer.
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

WITH RECURSIVE bought AS (
  SELECT k.account_id,
         CASE WHEN k.payer_account >= 1000 THEN 'account:' || k.payer_account
              WHEN s.payer ~ '^0x' THEN 'wallet:' || lower(s.payer)
              ELSE 'wallet:' || s.payer END AS root_buyer
  FROM sold_keys k
  LEFT JOIN settlements s ON s.account_id = k.payer_account AND s.call_id = k.call_id
  WHERE k.account_id IS NOT NULL
    AND (k.payer_account < 1000 OR k.payer_account NOT IN (SELECT account_id FROM sold_keys WHERE account_id IS NOT NULL))
  UNION ALL
  SELECT k.account_id, b.root_buyer FROM bought b JOIN sold_keys k ON k.payer_account = b.account_id
  WHERE k.account_id IS NOT NULL
)
INSERT INTO root_buyers (account_id, root_buyer)
SELECT account_id, root_buyer FROM bought WHERE root_buyer IS NOT NULL;
