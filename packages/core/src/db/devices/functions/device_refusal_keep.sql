-- Keeps a report that was refused, or counts it when it has come before, and tells the device's owner why. The oldest goes
-- when there are more than p_most.
--
-- The device stays locked to the end, so that a sensor that is added meanwhile is there already or finds the report.
CREATE OR REPLACE FUNCTION device_refusal_keep(
  p_device bigint, p_report bytea, p_code text, p_reason text, p_sensor text, p_due timestamptz, p_now timestamptz,
  p_most bigint
)
RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  known jsonb;
  due timestamptz;
  next bigint;
BEGIN
  UPDATE devices d SET refused_at = p_now, refusal = p_code || ': ' || p_reason
  WHERE d.no = p_device RETURNING d.sensors INTO known;
  due := CASE WHEN p_sensor IS NULL THEN p_due WHEN known ? p_sensor THEN p_now END;
  UPDATE device_refusals r
  SET count = r.count + 1, last_at = p_now, code = p_code, reason = p_reason, sensor = p_sensor, due_at = due
  WHERE r.device = p_device AND r.digest = sha256(p_report);
  IF FOUND THEN
    RETURN;
  END IF;
  UPDATE devices d SET refusals = d.refusals + 1 WHERE d.no = p_device RETURNING d.refusals INTO next;
  INSERT INTO device_refusals (device, nth, digest, report, code, reason, first_at, last_at, sensor, due_at)
  VALUES (p_device, next, sha256(p_report), p_report, p_code, p_reason, p_now, p_now, p_sensor, due);
  DELETE FROM device_refusals r WHERE r.device = p_device AND r.nth <= next - p_most;
END
$$;
