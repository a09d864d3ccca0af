/* What a reserve earns with time, and what its collateral tokens are worth. */

/* As the program counts them: two in a second. */
#define SLOTS_PER_YEAR 63072000
#define CURVE_POINT_BYTES 8

/* What belongs to those who lent: what is there and what is owed, without fees. */
FUNCTION void set_supply(U128 *supply, u8 *reserve) {
  set_whole(supply, load64(reserve + RESERVE_AVAILABLE));
  add(supply, wide_at(reserve, RESERVE_BORROWED));
  subtract(supply, wide_at(reserve, RESERVE_PROTOCOL_FEES));
  subtract(supply, wide_at(reserve, RESERVE_REFERRER_FEES));
  subtract(supply, wide_at(reserve, RESERVE_PENDING_FEES));
}

/* The part of the supply that is borrowed, not above one. */
FUNCTION void set_use(U128 *use, u8 *reserve) {
  U128 supply, one = {ONE, 0};
  u64 words[4];
  set_supply(&supply, reserve);
  use->low = use->high = 0;
  if (supply.low == 0 && supply.high == 0) return;
  multiply_wide(wide_at(reserve, RESERVE_BORROWED), &one, words);
  divide_wide(words, &supply, use);
  if (is_less(&one, use)) *use = one;
}

/* What borrowers pay in a year at this use: a point's rate within half a bps of it, and else on the line between two. */
FUNCTION void set_rate(U128 *rate, u8 *reserve) {
  U128 use, bps, half = {ONE / 2, 0};
  set_use(&use, reserve);
  bps = use;
  multiply(&bps, 10000);
  add(&bps, &half);
  u64 use_bps = bps.low >> FRACTION_BITS | bps.high << (64 - FRACTION_BITS);
  for (u64 index = 1; index < CURVE_POINTS; index++) {
    const u8 *to = reserve + RESERVE_CURVE + index * CURVE_POINT_BYTES, *from = to - CURVE_POINT_BYTES;
    u64 from_bps = load32(from), from_rate = load32(from + 4), to_bps = load32(to), to_rate = load32(to + 4);
    if (use_bps < from_bps || use_bps > to_bps) continue;
    set_bps(rate, use_bps == to_bps && use_bps != from_bps ? to_rate : from_rate);
    if (use_bps == from_bps || use_bps == to_bps) return;
    if (to_rate < from_rate) abort();
    U128 start;
    set_bps(&start, from_bps);
    subtract(&use, &start);
    multiply(&use, to_rate - from_rate);
    divide(&use, to_bps - from_bps);
    add(rate, &use);
    return;
  }
  abort();
}

/* What one grows to: multiplied out for up to four slots, and by the binomial series' first terms for more. */
FUNCTION void set_compounded(U128 *growth, const U128 *rate, u64 slots) {
  U128 base = *rate, once = {ONE, 0}, square, cube;
  divide(&base, SLOTS_PER_YEAR);
  *growth = once;
  if (slots == 0) return;
  if (slots < 5) {
    add(&once, &base);
    *growth = once;
    if (slots == 1) return;
    multiply_fractions(&once, &once, growth);
    if (slots == 3) multiply_fractions(growth, &once, growth);
    if (slots == 4) multiply_fractions(growth, growth, growth);
    return;
  }
  multiply_fractions(&base, &base, &square);
  multiply_fractions(&square, &base, &cube);
  multiply(&base, slots);
  add(growth, &base);
  multiply(&square, slots);
  multiply(&square, slots - 1);
  divide(&square, 2);
  add(growth, &square);
  multiply(&cube, slots);
  multiply(&cube, slots - 1);
  multiply(&cube, slots - 2);
  divide(&cube, 6);
  add(growth, &cube);
}

/* Shares out what was earned: the host's fixed part, and the protocol's part of the rest, of which referrers get some. */
FUNCTION void share_out(u8 *reserve, U128 *interest, const U128 *host_fee, u64 referral_bps) {
  U128 take, referral, part;
  set_whole(&take, reserve[RESERVE_TAKE_PERCENT]);
  divide(&take, 100);
  set_bps(&referral, referral_bps);
  subtract(interest, host_fee);
  multiply_fractions(&take, &referral, &referral);
  multiply_fractions(interest, &take, &part);
  multiply_fractions(interest, &referral, &referral);
  add(&part, host_fee);
  subtract(&part, &referral);
  add(wide_at(reserve, RESERVE_PROTOCOL_FEES), &part);
  add(wide_at(reserve, RESERVE_PENDING_FEES), &referral);
}

/* Brings a reserve up to a slot. */
FUNCTION u64 accrue(u8 *reserve, u64 slot, u64 referral_bps) {
  u64 last = load64(reserve + RESERVE_SLOT);
  if (slot < last) return ERROR_OVERFLOW;
  if (slot > last) {
    U128 rate, host, growth, debt, host_fee, *borrowed = wide_at(reserve, RESERVE_BORROWED);
    set_rate(&rate, reserve);
    set_bps(&host, load16(reserve + RESERVE_HOST_RATE_BPS));
    add(&rate, &host);
    set_compounded(&growth, &rate, slot - last);
    multiply_fractions(borrowed, &growth, &debt);
    multiply_fractions(wide_at(reserve, RESERVE_GROWTH), &growth, wide_at(reserve, RESERVE_GROWTH));
    set_compounded(&growth, &host, slot - last);
    multiply_fractions(borrowed, &growth, &host_fee);
    subtract(&host_fee, borrowed);
    growth = debt;
    subtract(&growth, borrowed);
    share_out(reserve, &growth, &host_fee, referral_bps);
    *borrowed = debt;
  }
  store64(reserve + RESERVE_SLOT, slot);
  return 0;
}

/* Collateral tokens, and what all of them are worth: one for one before the first deposit. */
INLINE void set_exchange(U128 *collateral, U128 *supply, u8 *reserve) {
  set_supply(supply, reserve);
  collateral->low = load64(reserve + RESERVE_COLLATERAL_SUPPLY);
  collateral->high = 0;
  if (collateral->low != 0 && (supply->low != 0 || supply->high != 0)) return;
  collateral->low = 1;
  supply->low = ONE;
  supply->high = 0;
}

/* An amount times one fraction over another; rounded down, or up. */
FUNCTION u64 convert(u64 amount, const U128 *times, const U128 *over, int is_up) {
  U128 whole = {amount, 0}, result;
  u64 words[4];
  multiply_wide(times, &whole, words);
  if (divide_wide(words, over, &result) && is_up) {
    U128 unit = {1, 0};
    add(&result, &unit);
  }
  if (result.high != 0) abort();
  return result.low;
}

/* What collateral is worth. */
FUNCTION u64 worth_of(u8 *reserve, u64 collateral_amount, int is_up) {
  U128 collateral, supply, over;
  set_exchange(&collateral, &supply, reserve);
  set_whole(&over, collateral.low);
  return convert(collateral_amount, &supply, &over, is_up);
}

/* What collateral an amount buys. */
FUNCTION u64 bought_for(u8 *reserve, u64 amount) {
  U128 collateral, supply, times;
  set_exchange(&collateral, &supply, reserve);
  set_whole(&times, collateral.low);
  return convert(amount, &times, &supply, 0);
}
