-- What a source that costs money by use has cost the operator, by day (UTC): all requests that it told the measure of.
CREATE TABLE source_costs (
  day date NOT NULL,
  source text NOT NULL,
  requests bigint NOT NULL CHECK (requests > 0),
  cost_micros bigint NOT NULL CHECK (cost_micros >= 0),
  PRIMARY KEY (day, source)
);
