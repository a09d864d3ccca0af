-- Lists the fleets that everybody may read to whoever asked for none.
CREATE INDEX devices_public_fleets ON devices (no) WHERE public AND revoked_at IS NULL AND fleet IS NOT NULL;
