-- Whether the process looks again for an account that is not in the bucket that it remembers. Those of a version from before there was
-- this column do not.
ALTER TABLE replicas ADD COLUMN looks_again boolean NOT NULL DEFAULT false;
