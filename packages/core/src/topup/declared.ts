import { declare } from '../declared.ts';
import { TOPUP_BOOKS } from './books-rules.ts';

export const TOPUP = declare({ name: 'topup', books: TOPUP_BOOKS, variables: {} });
