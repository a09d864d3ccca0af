/**
 * Loaded before the test runner of Node, whose async hooks follow every promise and socket of a process in order to know
 * the test that a suite, a hook or an uncaught error is of. Following them takes more time than most tests do. With this
 * module it learns the same from an AsyncLocalStorage, which costs next to nothing.
 */
import asyncHooks, { AsyncLocalStorage } from 'node:async_hooks';

const { AsyncResource, createHook, executionAsyncId } = asyncHooks;
/** The id of the test, suite or hook of a test that is running. */
const current = new AsyncLocalStorage<number>();
let follow: asyncHooks.HookCallbacks['init'];

/** A test, a suite or a hook of the runner, each of which extends this class. */
class FollowedResource extends AsyncResource {
  constructor(type: string, options?: number | asyncHooks.AsyncResourceOptions) {
    super(type, options);
    follow?.(this.asyncId(), type, this.triggerAsyncId(), this);
  }

  override runInAsyncScope<This, Result>(
    run: (this: This, ...args: unknown[]) => Result,
    thisArg?: This,
    ...args: unknown[]
  ): Result {
    return super.runInAsyncScope(() => current.run(this.asyncId(), () => Reflect.apply(run, thisArg, args)));
  }
}

Object.assign(asyncHooks, {
  AsyncResource: FollowedResource,
  executionAsyncId: () => current.getStore() ?? executionAsyncId(),
  // Enabled, even a hook that asks for nothing makes every promise tell when it goes on.
  createHook({ init }: asyncHooks.HookCallbacks): asyncHooks.AsyncHook {
    follow = init;
    const hook = { enable: () => hook, disable: () => hook };
    return hook;
  },
});
// The runner takes these functions as it is loaded; whoever imports them later gets those of Node.
await import('node:test');
Object.assign(asyncHooks, { AsyncResource, executionAsyncId, createHook });
