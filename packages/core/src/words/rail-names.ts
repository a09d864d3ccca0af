/** What the ways to pay are called, in calls, in the books and in documents. */
export type RailName = 'credits' | 'x402' | 'mpp';
