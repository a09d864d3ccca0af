-- The newest account that a walk's round began with: a key that was bought later is left for another round. A round that was
-- begun before this column gets another.
ALTER TABLE reversal_walks ADD COLUMN newest bigint NOT NULL DEFAULT 0;
