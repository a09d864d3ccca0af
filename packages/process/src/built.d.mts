export function builtProgram(root: string, program: string): string;
export function build(root: string, node: string): Promise<void>;
export function isUnbuilt(root: string): boolean;
