/**
 * All acts on the slots of a pool come one after the other: who waited for the pool's row sees, in the next statement of its function,
 * what the one before has committed (READ COMMITTED, volatile functions), and the moment is looked at after the wait.
 */
const LOCK_SLOTS = `
CREATE FUNCTION {schema}.store_lock_slots(a_pool text)
RETURNS timestamptz
LANGUAGE plpgsql
AS $body$
BEGIN
  PERFORM 1 FROM {schema}.store_slot_pool WHERE pool = a_pool FOR UPDATE;
  IF NOT FOUND THEN
    INSERT INTO {schema}.store_slot_pool (pool) VALUES (a_pool) ON CONFLICT (pool) DO NOTHING;
    PERFORM 1 FROM {schema}.store_slot_pool WHERE pool = a_pool FOR UPDATE;
  END IF;
  RETURN clock_timestamp();
END
$body$`

const ACQUIRE_SLOTS = `
CREATE FUNCTION {schema}.store_acquire_slots(a_pool text, a_max integer, a_max_per_key integer, a_holders text[], a_keys text[],
  a_lease_ms float8)
RETURNS TABLE (fence bigint, full_of text)
LANGUAGE plpgsql
AS $body$
#variable_conflict use_column
DECLARE
  v_now timestamptz := {schema}.store_lock_slots(a_pool);
  v_end timestamptz := v_now + a_lease_ms * interval '1 millisecond';
  v_held integer;
  v_fence bigint;
BEGIN
  DELETE FROM {schema}.store_slot WHERE pool = a_pool AND expires_at <= v_now;
  SELECT count(*) INTO v_held FROM {schema}.store_slot WHERE pool = a_pool;
  FOR i IN 1 .. cardinality(a_holders) LOOP
    UPDATE {schema}.store_slot SET expires_at = v_end
    WHERE pool = a_pool AND holder = a_holders[i] RETURNING fence INTO v_fence;
    IF FOUND THEN
      RETURN QUERY SELECT v_fence, NULL::text;
    ELSIF a_keys[i] IS NOT NULL AND a_max_per_key <=
      (SELECT count(*) FROM {schema}.store_slot WHERE pool = a_pool AND key = a_keys[i]) THEN
      RETURN QUERY SELECT NULL::bigint, 'key'::text;
    ELSIF v_held >= a_max THEN
      RETURN QUERY SELECT NULL::bigint, 'pool'::text;
    ELSE
      v_held := v_held + 1;
      INSERT INTO {schema}.store_slot (pool, holder, key, fence, expires_at)
      VALUES (a_pool, a_holders[i], a_keys[i], nextval('{schema}.store_fence'), v_end) RETURNING fence INTO v_fence;
      RETURN QUERY SELECT v_fence, NULL::text;
    END IF;
  END LOOP;
END
$body$`

const RENEW_SLOTS = `
CREATE FUNCTION {schema}.store_renew_slots(a_pool text, a_holders text[], a_fences bigint[], a_lease_ms float8)
RETURNS TABLE (holder text, fence bigint)
LANGUAGE plpgsql
AS $body$
#variable_conflict use_column
DECLARE
  v_now timestamptz := {schema}.store_lock_slots(a_pool);
BEGIN
  RETURN QUERY
  UPDATE {schema}.store_slot AS slot SET expires_at = v_now + a_lease_ms * interval '1 millisecond'
  FROM unnest(a_holders, a_fences) AS held (holder, fence)
  WHERE slot.pool = a_pool AND slot.holder = held.holder AND slot.fence = held.fence AND slot.expires_at > v_now
  RETURNING slot.holder, slot.fence;
END
$body$`

const RELEASE_SLOTS = `
CREATE FUNCTION {schema}.store_release_slots(a_pool text, a_holders text[], a_fences bigint[])
RETURNS void
LANGUAGE plpgsql
AS $body$
BEGIN
  PERFORM {schema}.store_lock_slots(a_pool);
  DELETE FROM {schema}.store_slot AS slot USING unnest(a_holders, a_fences) AS held (holder, fence)
  WHERE slot.pool = a_pool AND slot.holder = held.holder AND slot.fence = held.fence;
END
$body$`

export const SLOT_FUNCTIONS: readonly string[] = [
  LOCK_SLOTS,
  ACQUIRE_SLOTS,
  RENEW_SLOTS,
  RELEASE_SLOTS,
]
