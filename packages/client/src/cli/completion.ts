/** `farebox completion`: a script for a shell, with the commands and with the services that the server sells now. */
import { UsageError } from './io.ts';

/** @param services whose names follow `call` and `price` */
export function completionFor(
  shell: string | undefined,
  commands: readonly string[],
  services: readonly string[],
): string {
  const names = services.filter((name) => /^[a-z0-9-]+$/.test(name)).join(' ');
  const words = commands.join(' ');
  if (shell === 'bash' || shell === 'zsh')
    return `${shell === 'zsh' ? 'autoload -U +X bashcompinit && bashcompinit\n' : ''}_farebox() {
  local word="\${COMP_WORDS[COMP_CWORD]}" words="${words}"
  case "\${COMP_WORDS[1]}" in call|price) [ "$COMP_CWORD" -gt 1 ] && words="${names}" ;; esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -F _farebox farebox
`;
  if (shell === 'fish')
    return `complete -c farebox -f
complete -c farebox -n __fish_use_subcommand -a '${words}'
complete -c farebox -n '__fish_seen_subcommand_from call price' -a '${names}'
`;
  throw new UsageError('farebox completion takes bash, zsh or fish');
}
