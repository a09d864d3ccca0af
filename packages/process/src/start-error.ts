/** Something that keeps a program from starting and that its operator can put right: shown without a stack. */
export class StartError extends Error {}
