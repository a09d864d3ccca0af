/* The accounts of an instruction: which they must be, and what the token program does with them. */

#define TOKEN_ACCOUNT_BYTES 165
#define TOKEN_MINT 0
#define TOKEN_OWNER 32
#define TOKEN_AMOUNT 64
#define TOKEN_STATE 108
#define MINT_DECIMALS 44
/* The token program's instructions. */
#define MINT_TO 7
#define BURN 8
#define TRANSFER_CHECKED 12

/* Returns the error from where it stands unless this holds. */
#define REQUIRE(holds, error)                                                                            \
  do {                                                                                                   \
    if (!(holds)) return error;                                                                          \
  } while (0)
#define TRY(call)                                                                                        \
  do {                                                                                                   \
    u64 failed = (call);                                                                                 \
    if (failed) return failed;                                                                           \
  } while (0)

/* The accounts by what they are, in whatever order an instruction names them. */
typedef struct {
  Account *owner, *reserve, *market, *authority, *mint, *vault, *collateral_mint;
  Account *user_usdc, *user_collateral, *token_program, *liquidity_program, *sysvar;
} Parties;

FUNCTION u64 check_market(const Parties *all) {
  const Account *reserve = all->reserve, *market = all->market;
  REQUIRE(all->owner->is_signer, ERROR_NOT_SIGNED);
  REQUIRE(is_same_key(reserve->owner, MEMORY->program), ERROR_OTHER_PROGRAMS_ACCOUNT);
  REQUIRE(reserve->length == RESERVE_BYTES && load64(reserve->data) == RESERVE_MARK, ERROR_BAD_ACCOUNT_KIND);
  REQUIRE(is_same_key(market->owner, MEMORY->program), ERROR_OTHER_PROGRAMS_ACCOUNT);
  REQUIRE(market->length == MARKET_BYTES && load64(market->data) == MARKET_MARK, ERROR_BAD_ACCOUNT_KIND);
  REQUIRE(reserve->is_writable, ERROR_NOT_WRITABLE);
  REQUIRE(is_same_key(reserve->data + RESERVE_MARKET, market->key), ERROR_OTHER_MARKET);
  return 0;
}

/* The market's own address, derived from its key, signs for it from here on. */
FUNCTION u64 check_authority(const Parties *all) {
  Memory *memory = MEMORY;
  memory->lma[0] = 'l';
  memory->lma[1] = 'm';
  memory->lma[2] = 'a';
  memory->bump[0] = all->market->data[MARKET_BUMP];
  memory->seeds[0].bytes = memory->lma;
  memory->seeds[0].length = 3;
  memory->seeds[1].bytes = all->market->key;
  memory->seeds[1].length = KEY_BYTES;
  memory->seeds[2].bytes = memory->bump;
  memory->seeds[2].length = 1;
  memory->signer.seeds = memory->seeds;
  memory->signer.count = 3;
  u64 failed = sol_create_program_address(memory->seeds, 3, memory->program, memory->authority);
  REQUIRE(failed == 0 && is_same_key(memory->authority, all->authority->key), ERROR_OTHER_AUTHORITY);
  return 0;
}

FUNCTION u64 check_token_account(const Account *account, const u8 *mint) {
  REQUIRE(account->is_writable, ERROR_NOT_WRITABLE);
  REQUIRE(*account->lamports != 0, ERROR_NO_ACCOUNT);
  REQUIRE(is_key(account->owner, TOKEN_PROGRAM), ERROR_OTHER_PROGRAMS_ACCOUNT);
  REQUIRE(account->length == TOKEN_ACCOUNT_BYTES && account->data[TOKEN_STATE] != 0, ERROR_NO_ACCOUNT);
  REQUIRE(is_same_key(account->data + TOKEN_MINT, mint), ERROR_OTHER_MINT);
  return 0;
}

/* Those that an instruction has beside the collateral. */
FUNCTION u64 check_liquidity(const Parties *all) {
  const u8 *reserve = all->reserve->data;
  REQUIRE(is_same_key(all->mint->key, reserve + RESERVE_MINT), ERROR_OTHER_ADDRESS);
  REQUIRE(all->vault->is_writable, ERROR_NOT_WRITABLE);
  REQUIRE(is_same_key(all->vault->key, reserve + RESERVE_VAULT), ERROR_OTHER_ADDRESS);
  REQUIRE(is_key(all->liquidity_program->key, TOKEN_PROGRAM), ERROR_OTHER_PROGRAM);
  MEMORY->token_program = all->liquidity_program->key;
  TRY(check_token_account(all->user_usdc, all->mint->key));
  REQUIRE(!all->market->data[MARKET_EMERGENCY], ERROR_EMERGENCY);
  REQUIRE(load64(reserve + RESERVE_VERSION) == LAYOUT_VERSION, ERROR_OLD_VERSION);
  REQUIRE(!is_same_key(all->user_usdc->key, all->vault->key), ERROR_BAD_ACCOUNT);
  return 0;
}

FUNCTION u64 check_collateral(const Parties *all) {
  const u8 *reserve = all->reserve->data;
  REQUIRE(all->collateral_mint->is_writable, ERROR_NOT_WRITABLE);
  REQUIRE(is_same_key(all->collateral_mint->key, reserve + RESERVE_COLLATERAL_MINT), ERROR_OTHER_ADDRESS);
  REQUIRE(is_key(all->token_program->key, TOKEN_PROGRAM), ERROR_OTHER_PROGRAM);
  REQUIRE(is_key(all->sysvar->key, INSTRUCTIONS_SYSVAR), ERROR_OTHER_ADDRESS);
  TRY(check_token_account(all->user_collateral, all->collateral_mint->key));
  REQUIRE(!is_same_key(all->user_collateral->key, reserve + RESERVE_COLLATERAL_VAULT), ERROR_BAD_ACCOUNT);
  return 0;
}

INLINE void mention(u64 place, const Account *account, u8 is_writable, u8 is_signer) {
  Mention *mention = &MEMORY->mentions[place];
  mention->key = account->key;
  mention->is_writable = is_writable;
  mention->is_signer = is_signer;
}

/* Has the token program do what stands in `mentions`; the market signs too if it is asked to. */
FUNCTION u64 call_token(u64 what, u64 amount, u64 decimals, u64 count, u64 market_signs) {
  Memory *memory = MEMORY;
  u8 *data = memory->token_data;
  data[0] = what;
  for (int byte = 0; byte < 8; byte++) data[1 + byte] = amount >> (8 * byte);
  data[9] = decimals;
  memory->instruction.program = memory->token_program;
  memory->instruction.mentions = memory->mentions;
  memory->instruction.count = count;
  memory->instruction.data = data;
  memory->instruction.length = what == TRANSFER_CHECKED ? 10 : 9;
  return sol_invoke_signed_c(&memory->instruction, memory->accounts, memory->count, &memory->signer, market_signs);
}

/* Moves USDC from the user to the vault. */
FUNCTION u64 take_in(const Parties *all, u64 amount) {
  mention(0, all->user_usdc, 1, 0);
  mention(1, all->mint, 0, 0);
  mention(2, all->vault, 1, 0);
  mention(3, all->owner, 0, 1);
  return call_token(TRANSFER_CHECKED, amount, all->mint->data[MINT_DECIMALS], 4, 0);
}

/* Moves USDC from the vault to the user. */
FUNCTION u64 pay_out(const Parties *all, u64 amount) {
  mention(0, all->vault, 1, 0);
  mention(1, all->mint, 0, 0);
  mention(2, all->user_usdc, 1, 0);
  mention(3, all->authority, 0, 1);
  return call_token(TRANSFER_CHECKED, amount, all->mint->data[MINT_DECIMALS], 4, 1);
}

FUNCTION u64 mint_collateral(const Parties *all, u64 amount) {
  mention(0, all->collateral_mint, 1, 0);
  mention(1, all->user_collateral, 1, 0);
  mention(2, all->authority, 0, 1);
  return call_token(MINT_TO, amount, 0, 3, 1);
}

FUNCTION u64 burn_collateral(const Parties *all, u64 amount) {
  mention(0, all->user_collateral, 1, 0);
  mention(1, all->collateral_mint, 1, 0);
  mention(2, all->owner, 0, 1);
  return call_token(BURN, amount, 0, 3, 0);
}
