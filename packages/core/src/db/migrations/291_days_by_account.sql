-- Whether the digest of a day's transfers is a sum over accounts, as `ledger_day_transfers_apart` tells: so it is where the database is spread
-- over servers, each of which adds up its own. Days that were closed on one PostgreSQL have one digest over all of their transfers.
ALTER TABLE ledger_days ADD COLUMN by_account boolean NOT NULL DEFAULT false;
