-- Takes readings, those of one device in their order. What is known already is left as it is.
--
-- It waits for nobody's lock. It is planned once and by keys alone: by estimates of a day that is new, whole days would be
-- read for every batch, of all readings that there are.
--
-- A key that begins with a space is a hash of the reading. Readings that were stored before there were hashes have '' in
-- its place, and the same one may be sent again: one of that time with the same content is known.
--
-- status[i]: 0 stored   1 known before   2 the device has been revoked, or there is none   3 somebody else holds the device
CREATE OR REPLACE FUNCTION device_readings_take(
  p_device bigint[], p_at timestamptz[], p_key text[], p_measured text[], p_lat double precision[],
  p_lon double precision[], p_now timestamptz,
  OUT status smallint[]
)
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_bitmapscan = off
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  held bigint[];
BEGIN
  -- A number that is read here stays the device's last until the commit.
  SELECT coalesce(array_agg(l.no), '{}') INTO held FROM (
    SELECT d.no FROM devices d WHERE d.no = ANY (p_device) AND d.revoked_at IS NULL
    ORDER BY d.no FOR NO KEY UPDATE SKIP LOCKED
  ) l;
  -- Nobody else adds readings of a device that is held: what is not there now is new.
  WITH x AS (
    SELECT DISTINCT ON (x.device, x.at, x.key) x.*
    FROM unnest(p_device, p_at, p_key, p_measured, p_lat, p_lon)
           WITH ORDINALITY AS x (device, at, key, measured, lat, lon, ord)
    WHERE x.device = ANY (held) ORDER BY x.device, x.at, x.key, x.ord
  ), fresh AS (
    SELECT x.*, row_number() OVER (PARTITION BY x.device ORDER BY x.ord) AS nth FROM x
    WHERE NOT EXISTS (
      SELECT 1 FROM device_readings r WHERE r.device = x.device AND r.at = x.at AND r.key = x.key)
    AND NOT (x.key LIKE ' %' AND EXISTS (
      SELECT 1 FROM device_readings r WHERE r.device = x.device AND r.at = x.at AND r.key = ''
        AND r.measured = x.measured::jsonb AND r.lat IS NOT DISTINCT FROM x.lat
        AND r.lon IS NOT DISTINCT FROM x.lon))
  ), stored AS (
    INSERT INTO device_readings (device, at, key, seq, received_at, measured, lat, lon)
    SELECT f.device, f.at, f.key, d.seq + f.nth, p_now, f.measured::jsonb, f.lat, f.lon
    FROM fresh f JOIN devices d ON d.no = f.device
  ), told AS (
    UPDATE devices d
    SET seq = d.seq + f.count, last_at = greatest(d.last_at, f.at), refused_at = NULL, refusal = NULL
    FROM (SELECT device, count(*) AS count, max(at) AS at FROM fresh GROUP BY device) f WHERE d.no = f.device
  )
  SELECT array_agg(CASE
           WHEN f.ord IS NOT NULL THEN 0
           WHEN p.device = ANY (held) THEN 1
           WHEN EXISTS (SELECT 1 FROM devices d WHERE d.no = p.device AND d.revoked_at IS NULL) THEN 3
           ELSE 2 END::smallint ORDER BY p.ord)
  INTO status
  FROM unnest(p_device) WITH ORDINALITY AS p (device, ord) LEFT JOIN fresh f ON f.ord = p.ord;
END
$$;
