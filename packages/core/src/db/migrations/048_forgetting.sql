-- What is forgotten is found by the time that it is forgotten by, however much of it there is.
CREATE INDEX key_addresses_time ON key_addresses (seen_at);
CREATE INDEX lost_gas_time ON lost_gas (since);
CREATE INDEX device_offers_expiry ON device_offers (expires_at);
CREATE INDEX yield_keeper_reasons_time ON yield_keeper_reasons (vault, noted_at);
CREATE INDEX replicas_ended ON replicas (ended_at) WHERE ended_at IS NOT NULL;
