-- How far the clock of the process's machine is ahead of the database's, in milliseconds; null while that is not known.
alter table replicas add column clock_ahead_ms bigint;
