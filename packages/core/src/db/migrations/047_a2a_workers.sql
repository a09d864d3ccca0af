-- Who works on a task. The same message may be delivered several times at once; only one of those that work on it may write an end
-- that bought nothing.
ALTER TABLE a2a_tasks ADD worker uuid;
