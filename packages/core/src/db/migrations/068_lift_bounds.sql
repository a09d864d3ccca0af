-- An operator may lift the bounds that accounts of one root buyer share.
ALTER TABLE operator_acts DROP CONSTRAINT operator_acts_act_check;
ALTER TABLE operator_acts ADD CONSTRAINT operator_acts_act_check
  CHECK (act IN ('freeze', 'unfreeze', 'grant', 'refund_order', 'refund_call', 'mail_key', 'refund_payment', 'lift_bounds'));
ALTER TABLE operator_acts DROP CONSTRAINT operator_acts_amount;
ALTER TABLE operator_acts ADD CONSTRAINT operator_acts_amount
  CHECK ((act IN ('freeze', 'unfreeze', 'mail_key', 'lift_bounds')) = (amount_micros IS NULL));
