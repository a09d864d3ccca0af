-- When a rotation ended a key. Its row is forgotten some time later.
ALTER TABLE api_keys ADD COLUMN rotated_at timestamptz;

-- When those ended that have a successor is not known. A day back, so that they do not count as rotations of today.
UPDATE api_keys k SET rotated_at = now() - interval '1 day'
WHERE status = 'revoked' AND EXISTS (SELECT 1 FROM api_keys n WHERE n.account_id = k.account_id AND n.id > k.id);

CREATE INDEX api_keys_rotated ON api_keys (rotated_at, id) WHERE rotated_at IS NOT NULL;
