import { declare } from '../declared.ts';
import { usdOrNone } from '../keys/declared.ts';
import { SOLD_KEY_BOOKS } from './books-rules.ts';
import { SOLD_KEY_PEOPLE } from './personal-data.ts';

export const SOLD_KEYS = declare({
  name: 'soldKeys',
  books: SOLD_KEY_BOOKS,
  people: SOLD_KEY_PEOPLE,
  variables: {
    /** Null: there is no such bound. */
    newCardMicrosPerDay: {
      name: 'NEW_CARD_KEYS_USD_PER_DAY',
      describe:
        'Most keys, in USD, that one account may buy in 24 hours with credit whose card payment is younger than seven days; `none`: no limit',
      shape: usdOrNone,
      fallback: '5',
    },
  },
});
