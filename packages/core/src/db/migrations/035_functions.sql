-- From here on no migration creates a function or a trigger: the current text of each is a file in a folder `functions` of
-- its owner, and `db/functions.ts` brings it into the database.

-- Functions that statements call, by the names that they have here: a name ends in the checksum of its text. Two versions
-- of the server call each their own.
CREATE TABLE sql_functions (
  name text PRIMARY KEY,
  -- When a process last said that it calls it. What nobody calls any more is dropped.
  wanted_at timestamptz NOT NULL
);

-- What the version before this one calls. It says nothing about that.
INSERT INTO sql_functions (name, wanted_at)
SELECT name, now() FROM unnest(ARRAY[
  'calls_apply', 'calls_begin', 'calls_finish', 'calls_settle_past', 'ledger_apply', 'ledger_apply_planned', 'open_calls'
]) AS u (name);

-- Functions of triggers, with their triggers: the writes of every version run the same one, so each has one text, and a
-- text has a number.
CREATE TABLE sql_triggers (
  name text PRIMARY KEY,
  text_number integer NOT NULL
);

-- The migrations before this one left these as they are in the files.
INSERT INTO sql_triggers (name, text_number) VALUES
  ('auto_recharge_falls_due', 1), ('operator_acts_only_grow', 1), ('trial_credit_came_back', 1);
