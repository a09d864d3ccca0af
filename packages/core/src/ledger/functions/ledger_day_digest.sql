-- The digest of a closed day: over that of the day before it and what the day was closed with.
CREATE OR REPLACE FUNCTION ledger_day_digest(
  p_before bytea, p_day date, p_transfers bigint, p_transfers_digest bytea, p_moves_digest bytea
) RETURNS bytea
LANGUAGE sql IMMUTABLE
AS $$
  SELECT sha256(p_before || convert_to(
    p_day - DATE '1970-01-01' || ' ' || p_transfers || ' ' || encode(p_transfers_digest, 'hex') || ' '
      || encode(p_moves_digest, 'hex'), 'UTF8'))
$$;
