/* Whole numbers wider than 64 bits. What does not fit aborts the program, as the real one panics. */

typedef struct { u64 low, high; } U128;

/* Amounts are kept times 2^60, and so are rates. */
#define FRACTION_BITS 60
#define ONE (1UL << FRACTION_BITS)

INLINE U128 *wide_at(u8 *data, u64 offset) { return (U128 *)(data + offset); }

INLINE int is_less(const U128 *one, const U128 *other) {
  return one->high < other->high || (one->high == other->high && one->low < other->low);
}

INLINE void add(U128 *to, const U128 *more) {
  u64 low = to->low + more->low, carry = low < more->low;
  u64 high = to->high + more->high, sum = high + carry;
  if (high < more->high || sum < high) abort();
  to->low = low;
  to->high = sum;
}

INLINE void subtract(U128 *from, const U128 *less) {
  if (is_less(from, less)) abort();
  u64 borrow = from->low < less->low;
  from->low -= less->low;
  from->high -= less->high + borrow;
}

INLINE void multiply_words(u64 one, u64 other, U128 *product) {
  u64 a = (u32)one, b = one >> 32, c = (u32)other, d = other >> 32;
  u64 ac = a * c, ad = a * d, bc = b * c, middle = (ac >> 32) + (u32)ad + (u32)bc;
  product->low = (u32)ac | middle << 32;
  product->high = b * d + (ad >> 32) + (bc >> 32) + (middle >> 32);
}

/* Adds to a word of a wider number and carries on. */
INLINE void add_words(u64 *words, const U128 *more) {
  words[0] += more->low;
  u64 carry = words[0] < more->low, high = more->high + carry;
  /* A product's upper word is never full, so `high` has not wrapped. */
  words[1] += high;
  if (words[1] < high) words[2]++;
}

/* All 256 bits of a product. */
FUNCTION void multiply_wide(const U128 *one, const U128 *other, u64 *words) {
  U128 part;
  multiply_words(one->low, other->low, &part);
  words[0] = part.low;
  words[1] = part.high;
  words[2] = words[3] = 0;
  multiply_words(one->low, other->high, &part);
  add_words(words + 1, &part);
  multiply_words(one->high, other->low, &part);
  add_words(words + 1, &part);
  multiply_words(one->high, other->high, &part);
  words[2] += part.low;
  words[3] += part.high + (words[2] < part.low);
}

/* A whole number that is multiplied with one that is below 2^64. */
FUNCTION void multiply(U128 *value, u64 by) {
  U128 low, high;
  multiply_words(value->low, by, &low);
  multiply_words(value->high, by, &high);
  value->low = low.low;
  value->high = low.high + high.low;
  if (high.high != 0 || value->high < low.high) abort();
}

/* The product of two fractions, rounded down. */
FUNCTION void multiply_fractions(const U128 *one, const U128 *other, U128 *product) {
  u64 words[4];
  multiply_wide(one, other, words);
  if (words[3] != 0 || words[2] >> FRACTION_BITS != 0) abort();
  product->low = words[0] >> FRACTION_BITS | words[1] << (64 - FRACTION_BITS);
  product->high = words[1] >> FRACTION_BITS | words[2] << (64 - FRACTION_BITS);
}

/* Divides by a number below 2^32, rounded down. */
FUNCTION void divide(U128 *value, u64 by) {
  u64 high = value->high / by, left = value->high % by;
  u64 upper = left << 32 | value->low >> 32;
  u64 lower = (upper % by) << 32 | (u32)value->low;
  value->high = high;
  value->low = (upper / by) << 32 | lower / by;
}

/* Divides 256 bits, rounded down. Returns whether something was left over. */
FUNCTION int divide_wide(const u64 *words, const U128 *by, U128 *quotient) {
  U128 left = {0, 0};
  u64 low = 0, high = 0;
  if (by->low == 0 && by->high == 0) abort();
  int word = 3;
  while (word > 0 && words[word] == 0) word--;
  for (; word >= 0; word--) {
    u64 bits = words[word];
    for (int bit = 0; bit < 64; bit++) {
      u64 beyond = left.high >> 63;
      left.high = left.high << 1 | left.low >> 63;
      left.low = left.low << 1 | bits >> 63;
      bits <<= 1;
      if (high >> 63) abort();
      high = high << 1 | low >> 63;
      low <<= 1;
      if (beyond || !is_less(&left, by)) {
        u64 borrow = left.low < by->low;
        left.low -= by->low;
        left.high -= by->high + borrow;
        low |= 1;
      }
    }
  }
  quotient->low = low;
  quotient->high = high;
  return left.low != 0 || left.high != 0;
}

/* A whole number as a fraction. */
INLINE void set_whole(U128 *fraction, u64 whole) {
  fraction->low = whole << FRACTION_BITS;
  fraction->high = whole >> (64 - FRACTION_BITS);
}

/* So many hundredths of a percent as a fraction. */
INLINE void set_bps(U128 *fraction, u64 bps) {
  set_whole(fraction, bps);
  divide(fraction, 10000);
}
