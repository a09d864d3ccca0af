/* What the runtime hands a program, and what a program may ask of it. */

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
typedef long i64;

#define INLINE static inline __attribute__((always_inline))
/* A function of its own: the runtime gives each a stack of its own, and the compiler allows 512 bytes. */
#define FUNCTION static __attribute__((noinline))
#define KEY_BYTES 32

/* As `sol_invoke_signed_c` reads it. */
typedef struct {
  u8 *key;
  u64 *lamports;
  u64 length;
  u8 *data;
  u8 *owner;
  u64 rent_epoch;
  u8 is_signer, is_writable, is_executable;
} Account;

typedef struct { const u8 *key; u8 is_writable, is_signer; } Mention;
typedef struct { const u8 *program; Mention *mentions; u64 count; u8 *data; u64 length; } Instruction;
typedef struct { const u8 *bytes; u64 length; } Seed;
typedef struct { const Seed *seeds; u64 count; } Signer;

extern void abort(void);
extern u64 sol_log_(const u8 *text, u64 length);
extern u64 sol_get_clock_sysvar(u64 *clock);
extern u64 sol_create_program_address(const Seed *seeds, u64 count, const u8 *program, u8 *address);
extern u64 sol_invoke_signed_c(const Instruction *instruction, const Account *accounts, u64 count,
                               const Signer *signers, u64 signer_count);

/* Places in the clock, in words of eight bytes. */
#define CLOCK_WORDS 5
#define CLOCK_SLOT 0
#define CLOCK_SECONDS 4

#define MAX_ACCOUNTS 32
/* Behind an account's data the runtime leaves room for it to grow. */
#define ROOM_TO_GROW 10240
#define NOT_SEEN_BEFORE 0xff
/* The runtime's own error for arguments that cannot be. */
#define INVALID_ARGUMENT (2UL << 32)

/*
 * The program's memory beside its stack. There are no global variables: a program's file may hold code alone, so that
 * the linker stays small.
 */
typedef struct {
  Account accounts[MAX_ACCOUNTS];
  u64 count;
  u8 *data;
  u64 length;
  const u8 *program, *token_program;
  u8 lma[8], bump[8], authority[KEY_BYTES];
  Seed seeds[3];
  Signer signer;
  Mention mentions[4];
  Instruction instruction;
  u8 token_data[16];
  u64 text[4];
} Memory;
#define MEMORY ((Memory *)0x300000000UL)

INLINE u64 load64(const u8 *at) { return *(const u64 *)at; }
INLINE u32 load32(const u8 *at) { return *(const u32 *)at; }
INLINE u16 load16(const u8 *at) { return *(const u16 *)at; }
INLINE void store64(u8 *at, u64 value) { *(u64 *)at = value; }

INLINE int is_same_key(const u8 *one, const u8 *other) {
  return load64(one) == load64(other) && load64(one + 8) == load64(other + 8) &&
         load64(one + 16) == load64(other + 16) && load64(one + 24) == load64(other + 24);
}

/* For keys that are four numbers. */
INLINE int is_key(const u8 *key, u64 first, u64 second, u64 third, u64 fourth) {
  return load64(key) == first && load64(key + 8) == second && load64(key + 16) == third &&
         load64(key + 24) == fourth;
}

/* Lists the accounts of the input; those named twice share their data. */
FUNCTION u64 read_input(u8 *input) {
  u64 count = load64(input);
  if (count > MAX_ACCOUNTS) return INVALID_ARGUMENT;
  u8 *at = input + 8;
  for (u64 index = 0; index < count; index++) {
    Account *account = &MEMORY->accounts[index];
    u8 seen_at = at[0];
    if (seen_at != NOT_SEEN_BEFORE) {
      *account = MEMORY->accounts[seen_at];
      at += 8;
      continue;
    }
    account->is_signer = at[1];
    account->is_writable = at[2];
    account->is_executable = at[3];
    account->key = at + 8;
    account->owner = at + 40;
    account->lamports = (u64 *)(at + 72);
    account->length = load64(at + 80);
    account->data = at + 88;
    at += 88 + account->length + ROOM_TO_GROW;
    at = (u8 *)(((u64)at + 7) & ~7UL);
    account->rent_epoch = load64(at);
    at += 8;
  }
  MEMORY->count = count;
  MEMORY->length = load64(at);
  MEMORY->data = at + 8;
  MEMORY->program = at + 8 + MEMORY->length;
  return 0;
}

/* Eight letters as a number: a text in quotes would be data, and there is none. */
#define WORD(a, b, c, d, e, f, g, h)                                                                     \
  ((u64)(a) | (u64)(b) << 8 | (u64)(c) << 16 | (u64)(d) << 24 | (u64)(e) << 32 | (u64)(f) << 40 |      \
   (u64)(g) << 48 | (u64)(h) << 56)

/* Says in the transaction's log what is done, and that it is not the real program that does it. */
FUNCTION void log_what(u64 what) {
  u64 *text = MEMORY->text;
  text[0] = WORD('S', 'a', 'n', 'd', 'b', 'o', 'x', ' ');
  text[1] = WORD('l', 'e', 'n', 'd', 'i', 'n', 'g', ' ');
  text[2] = WORD('d', 'o', 'u', 'b', 'l', 'e', ':', ' ');
  text[3] = what;
  sol_log_((const u8 *)text, 32);
}
