-- In steps.
-- In databases from before the baseline nobody has looked yet whether all orders keep this constraint.
-- Step.
ALTER TABLE card_orders VALIDATE CONSTRAINT card_orders_shown_card;
