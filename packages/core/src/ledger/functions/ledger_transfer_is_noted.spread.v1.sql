-- On a database that is spread: notes a transfer that the coordinator has to hear of, in the commit of the transfer and on its server. These
-- are the transfers for which `ledger_transfers` has triggers on one PostgreSQL.
CREATE OR REPLACE FUNCTION ledger_transfer_is_noted() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  INSERT INTO ledger_outbox (bucket, account_id, id, phase) VALUES (NEW.bucket, NEW.account_id, NEW.id, NEW.phase);
  RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER ledger_transfer_is_noted AFTER INSERT ON ledger_transfers
FOR EACH ROW WHEN (NEW.code IN ('call_refund', 'operator_refund', 'onchain_refund', 'settlement_lost', 'card_reversal'))
EXECUTE FUNCTION ledger_transfer_is_noted();
