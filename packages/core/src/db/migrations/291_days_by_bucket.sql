-- Whether each bucket has a digest of its own in the digest of a day's transfers: so it is where the database is spread over servers, whose
-- digests they make. Days that were closed on one PostgreSQL have one over all of them.
ALTER TABLE ledger_days ADD COLUMN by_bucket boolean NOT NULL DEFAULT false;
