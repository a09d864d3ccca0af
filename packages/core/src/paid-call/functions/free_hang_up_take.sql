-- Takes one of the free hang-ups that a buyer has in a day for a call: held until p_held_until while the call runs, or used
-- where that is NULL. Slots that were held by calls whose process is gone are free again when their time is over.
--
-- Each slot is taken by the row's own key, so that of two takers at once the second takes the next one.
--
-- Returns whether there was one left.
CREATE OR REPLACE FUNCTION free_hang_up_take(
  p_buyer text, p_day date, p_most integer, p_call uuid, p_held_until timestamptz, p_now timestamptz
) RETURNS boolean
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
  FOR i IN 1..p_most LOOP
    INSERT INTO free_hang_ups AS h (buyer, day, slot, call_id, held_until)
    VALUES (p_buyer, p_day, i, p_call, p_held_until)
    ON CONFLICT (buyer, day, slot) DO UPDATE SET call_id = excluded.call_id, held_until = excluded.held_until
    WHERE h.held_until <= p_now;
    IF FOUND THEN RETURN true; END IF;
  END LOOP;
  RETURN false;
END
$$;
