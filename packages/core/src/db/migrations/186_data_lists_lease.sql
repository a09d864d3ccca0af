-- Whoever fetches a list holds it by its `next_at`, as in the other queues. No version in use reads or writes this column.
ALTER TABLE data_lists DROP COLUMN lease;
