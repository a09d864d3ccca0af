-- Grants above the bound wait for a second operator too. They name neither an order nor a call.
ALTER TABLE operator_proposals
  DROP CONSTRAINT operator_proposals_act_check,
  DROP CONSTRAINT operator_proposals_check2,
  ADD CHECK (act IN ('refund_order', 'refund_call', 'refund_payment', 'grant')),
  ADD CHECK (num_nonnulls(order_id, call_id) = CASE act WHEN 'grant' THEN 0 ELSE 1 END);
-- What an operator gave alone in the last 24 hours is counted with every gift.
CREATE INDEX operator_acts_actor ON operator_acts (actor, at);
