import { serveTasks } from './serve-tasks.ts';

/** A program for tests that does as it is told. */
serveTasks((task: { do: 'add' | 'throw' | 'hang' | 'exit'; a?: number; b?: number }) => {
  if (task.do === 'throw') throw new Error('cannot be added');
  if (task.do === 'exit') process.exit(3);
  while (task.do === 'hang');
  return (task.a ?? 0) + (task.b ?? 0);
});
