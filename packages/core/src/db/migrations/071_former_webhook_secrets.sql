-- Secrets of a webhook that others replaced, the newest first: each signs too until the time that its owner was told. An element
-- holds `sealed`, as in sealed_secret, and `until`, in ISO 8601. They stand in the webhook's own row, so whoever reads its
-- secret reads these as of the same moment.
ALTER TABLE webhooks ADD COLUMN former_secrets jsonb NOT NULL DEFAULT '[]'
  CHECK (jsonb_typeof(former_secrets) = 'array' AND jsonb_array_length(former_secrets) <= 5);
-- sealed_secret_before stays for processes of the previous version that still run; this version does not read it.
UPDATE webhooks
SET former_secrets = jsonb_build_array(jsonb_build_object('sealed', sealed_secret_before, 'until', before_until))
WHERE sealed_secret_before IS NOT NULL AND before_until IS NOT NULL;
