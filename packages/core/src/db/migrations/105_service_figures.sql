-- How the services have answered in the last day, for buyers who compare them. A job computes it again; each row is of one service.
CREATE TABLE service_figures (
  service text PRIMARY KEY,
  -- Calls that were answered, and calls that failed by a fault of ours or of a source, among those that were looked at.
  answered integer NOT NULL,
  failed integer NOT NULL,
  -- From a call's beginning to its end, of answered ones; NULL: none was answered.
  median_ms integer,
  measured_at timestamptz NOT NULL
);
