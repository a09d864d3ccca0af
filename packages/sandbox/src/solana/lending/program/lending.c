/*
 * The sandbox's double of a lending program of Solana: it takes the real one's instructions for lending and leaving, with
 * its accounts, its arithmetic to the last bit and its errors, and knows nothing of collateral, prices and liquidation.
 * In place of those, the market's owner borrows and pays back. Names in capitals that stand nowhere here come from
 * layout.ts. It was written for the sandbox from public descriptions of layouts and formulas.
 */
#include "solana.h"
#include "wide.h"
#include "interest.h"
#include "accounts.h"

#define OBSOLETE 1
#define MARK_BYTES 8
#define ARGUMENT_BYTES 8
#define MOST_OF_CAP 0x7fffffffffffffffUL

/* How far the vault is from what the reserve counts as there: no instruction may change it. */
INLINE u64 gap_of(const Parties *all) {
  return load64(all->vault->data + TOKEN_AMOUNT) - load64(all->reserve->data + RESERVE_AVAILABLE);
}

/* Counts what leaves within an interval, and takes off again what comes in. */
FUNCTION u64 count_for_cap(u8 *reserve, u64 amount, u64 seconds, int is_leaving) {
  i64 capacity = load64(reserve + RESERVE_CAP_CAPACITY), total = load64(reserve + RESERVE_CAP_TOTAL), next;
  u64 interval = load64(reserve + RESERVE_CAP_SECONDS);
  REQUIRE(amount <= MOST_OF_CAP, ERROR_OVERFLOW);
  if (interval != 0) {
    u64 began = load64(reserve + RESERVE_CAP_START);
    REQUIRE(began <= seconds, ERROR_CLOCK_WENT_BACK);
    if (seconds - began >= interval) {
      total = 0;
      store64(reserve + RESERVE_CAP_START, seconds);
    }
    if (is_leaving)
      REQUIRE(capacity >= 0 && total <= capacity && amount <= (u64)capacity - (u64)total, ERROR_CAP_REACHED);
  }
  next = is_leaving ? (u64)total + amount : (u64)total - amount;
  int has_wrapped = is_leaving ? next < total : next > total;
  REQUIRE(!has_wrapped || interval == 0, ERROR_OVERFLOW);
  if (has_wrapped) next = is_leaving ? (i64)MOST_OF_CAP : -(i64)MOST_OF_CAP - 1;
  store64(reserve + RESERVE_CAP_TOTAL, next);
  return 0;
}

/* Brings the reserve up to now, and marks it as changed in this slot. */
FUNCTION u64 bring_up(const Parties *all, u64 *seconds) {
  u64 clock[CLOCK_WORDS];
  TRY(sol_get_clock_sysvar(clock));
  TRY(accrue(all->reserve->data, clock[CLOCK_SLOT], load16(all->market->data + MARKET_REFERRAL_BPS)));
  all->reserve->data[RESERVE_STALE] = 1;
  *seconds = clock[CLOCK_SECONDS];
  return 0;
}

/* What the vault may pay out to whoever does not wait in the queue. */
FUNCTION u64 free_liquidity(u8 *reserve) {
  u64 available = load64(reserve + RESERVE_AVAILABLE);
  u64 queued = worth_of(reserve, load64(reserve + RESERVE_QUEUED), 0);
  return queued < available ? available - queued : 0;
}

FUNCTION u64 check_limit(u8 *reserve, u64 amount) {
  U128 supply, more, limit;
  set_supply(&supply, reserve);
  set_whole(&more, amount);
  add(&supply, &more);
  set_whole(&limit, load64(reserve + RESERVE_DEPOSIT_LIMIT));
  REQUIRE(!is_less(&limit, &supply), ERROR_DEPOSIT_LIMIT);
  return 0;
}

/* Adds to a number of the reserve. */
FUNCTION u64 increase(u8 *at, u64 amount) {
  u64 sum = load64(at) + amount;
  REQUIRE(sum >= amount, ERROR_OVERFLOW);
  store64(at, sum);
  return 0;
}

FUNCTION u64 deposit(const Parties *all, u64 offered) {
  u8 *reserve = all->reserve->data;
  u64 seconds, gap;
  log_what(WORD('d', 'e', 'p', 'o', 's', 'i', 't', ' '));
  TRY(check_liquidity(all));
  TRY(check_collateral(all));
  gap = gap_of(all);
  REQUIRE(reserve[RESERVE_STATUS] != OBSOLETE, ERROR_OBSOLETE);
  REQUIRE(!reserve[RESERVE_COLLATERAL_BLOCKED], ERROR_COLLATERAL_BLOCKED);
  TRY(bring_up(all, &seconds));
  REQUIRE(offered != 0, ERROR_ZERO_AMOUNT);
  u64 collateral = bought_for(reserve, offered);
  /* What buys no whole token of collateral stays with the user. */
  u64 amount = worth_of(reserve, collateral, 1);
  REQUIRE(amount <= offered, ERROR_OVERFLOW);
  TRY(check_limit(reserve, amount));
  TRY(count_for_cap(reserve, amount, seconds, 0));
  TRY(increase(reserve + RESERVE_AVAILABLE, amount));
  TRY(increase(reserve + RESERVE_COLLATERAL_SUPPLY, collateral));
  TRY(take_in(all, amount));
  TRY(mint_collateral(all, collateral));
  REQUIRE(gap_of(all) == gap, ERROR_VAULT_MISMATCH);
  return 0;
}

FUNCTION u64 redeem(const Parties *all, u64 collateral) {
  u8 *reserve = all->reserve->data;
  u64 seconds, gap;
  log_what(WORD('r', 'e', 'd', 'e', 'e', 'm', ' ', ' '));
  TRY(check_liquidity(all));
  TRY(check_collateral(all));
  gap = gap_of(all);
  REQUIRE(is_same_key(all->user_usdc->data + TOKEN_OWNER, all->owner->key), ERROR_OTHER_TOKEN_OWNER);
  TRY(bring_up(all, &seconds));
  REQUIRE(collateral != 0, ERROR_ZERO_AMOUNT);
  u64 amount = worth_of(reserve, collateral, 0), supply = load64(reserve + RESERVE_COLLATERAL_SUPPLY);
  REQUIRE(amount <= free_liquidity(reserve), ERROR_NO_LIQUIDITY);
  REQUIRE(collateral <= supply, ERROR_OVERFLOW);
  TRY(count_for_cap(reserve, amount, seconds, 1));
  store64(reserve + RESERVE_AVAILABLE, load64(reserve + RESERVE_AVAILABLE) - amount);
  store64(reserve + RESERVE_COLLATERAL_SUPPLY, supply - collateral);
  TRY(burn_collateral(all, collateral));
  TRY(pay_out(all, amount));
  REQUIRE(gap_of(all) == gap, ERROR_VAULT_MISMATCH);
  return 0;
}

/* The sandbox's own: the market's owner owes for all borrowers. */
FUNCTION u64 borrow(const Parties *all, u64 amount) {
  u8 *reserve = all->reserve->data;
  u64 seconds;
  U128 more;
  log_what(WORD('b', 'o', 'r', 'r', 'o', 'w', ' ', ' '));
  TRY(check_liquidity(all));
  REQUIRE(is_same_key(all->market->data + MARKET_OWNER, all->owner->key), ERROR_OTHER_MARKET);
  TRY(bring_up(all, &seconds));
  REQUIRE(amount != 0, ERROR_ZERO_AMOUNT);
  REQUIRE(amount <= free_liquidity(reserve), ERROR_NO_LIQUIDITY);
  store64(reserve + RESERVE_AVAILABLE, load64(reserve + RESERVE_AVAILABLE) - amount);
  set_whole(&more, amount);
  add(wide_at(reserve, RESERVE_BORROWED), &more);
  return pay_out(all, amount);
}

/* Pays back, and not more than is owed. */
FUNCTION u64 repay(const Parties *all, u64 offered) {
  u8 *reserve = all->reserve->data;
  u64 seconds;
  U128 less, *borrowed = wide_at(reserve, RESERVE_BORROWED);
  log_what(WORD('r', 'e', 'p', 'a', 'y', ' ', ' ', ' '));
  TRY(check_liquidity(all));
  REQUIRE(is_same_key(all->market->data + MARKET_OWNER, all->owner->key), ERROR_OTHER_MARKET);
  TRY(bring_up(all, &seconds));
  REQUIRE(offered != 0, ERROR_ZERO_AMOUNT);
  u64 owed = borrowed->high >> FRACTION_BITS ? offered
                                             : borrowed->low >> FRACTION_BITS | borrowed->high << (64 - FRACTION_BITS);
  u64 amount = offered < owed ? offered : owed;
  set_whole(&less, amount);
  subtract(borrowed, &less);
  TRY(increase(reserve + RESERVE_AVAILABLE, amount));
  return take_in(all, amount);
}

/* Puts the accounts where an instruction's order has them. */
FUNCTION u64 order_parties(Parties *all, u64 what) {
  Account *at = MEMORY->accounts;
  int has_collateral = what == DO_DEPOSIT || what == DO_REDEEM, leaves = what == DO_REDEEM;
  REQUIRE(MEMORY->count >= (has_collateral ? 12 : 8), ERROR_TOO_FEW_ACCOUNTS);
  all->owner = at;
  all->reserve = at + (leaves ? 2 : 1);
  all->market = at + (leaves ? 1 : 2);
  all->authority = at + 3;
  all->mint = at + 4;
  all->vault = at + (leaves ? 6 : 5);
  all->collateral_mint = at + (leaves ? 5 : 6);
  all->user_usdc = at + (!has_collateral ? 6 : leaves ? 8 : 7);
  all->user_collateral = at + (leaves ? 7 : 8);
  all->token_program = at + 9;
  all->liquidity_program = at + (has_collateral ? 10 : 7);
  all->sysvar = at + 11;
  return 0;
}

u64 entrypoint(u8 *input) {
  Parties all;
  TRY(read_input(input));
  REQUIRE(MEMORY->length >= MARK_BYTES, ERROR_UNKNOWN_INSTRUCTION);
  u64 what = load64(MEMORY->data);
  REQUIRE(what == DO_DEPOSIT || what == DO_REDEEM || what == DO_BORROW || what == DO_REPAY,
          ERROR_UNKNOWN_INSTRUCTION);
  REQUIRE(MEMORY->length >= MARK_BYTES + ARGUMENT_BYTES, ERROR_BAD_ARGUMENTS);
  u64 amount = load64(MEMORY->data + MARK_BYTES);
  TRY(order_parties(&all, what));
  TRY(check_market(&all));
  TRY(check_authority(&all));
  if (what == DO_DEPOSIT) return deposit(&all, amount);
  if (what == DO_REDEEM) return redeem(&all, amount);
  return what == DO_BORROW ? borrow(&all, amount) : repay(&all, amount);
}
