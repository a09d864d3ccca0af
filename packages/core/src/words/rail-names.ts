/** The names of the ways to pay, in calls, in the books and in documents. */
export type RailName = 'credits' | 'x402' | 'mpp';
