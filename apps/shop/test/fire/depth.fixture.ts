/** Whether the random tests run for hours (`npm run test:deep`) or for a bounded part of `npm test`. */
export const isDeep = process.env.TEST_DEEP === '1';
