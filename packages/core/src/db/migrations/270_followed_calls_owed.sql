-- In steps.
-- What is looked for with each call that is followed is an answer that its caller did not get: rows of answers that arrived are not
-- read. A cancellation finds the call of a request by the request's name.
-- Step.
DROP INDEX CONCURRENTLY IF EXISTS followed_calls_owed;
-- Step.
CREATE INDEX CONCURRENTLY followed_calls_owed ON followed_calls (key_id, fingerprint) WHERE state <> 2;
-- Step.
DROP INDEX CONCURRENTLY IF EXISTS followed_calls_request;
-- Step.
CREATE INDEX CONCURRENTLY followed_calls_request ON followed_calls (key_id, request_id) WHERE request_id IS NOT NULL;
-- Step.
DROP INDEX CONCURRENTLY IF EXISTS followed_calls_key;
