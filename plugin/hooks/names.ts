/**
 * Names that the plugin's files agree on, and what an agent's message becomes.
 */
export const PLUGIN = 'cc-agents'
/** What each agent's message becomes. The mode is the agent's; only the header of a task says another one. */
export const VERBS: Record<string, readonly string[]> = {
  [`${PLUGIN}:gpt`]: ['run', '--mode', 'read-only'],
  [`${PLUGIN}:gpt-writer`]: ['run', '--mode', 'write'],
  [`${PLUGIN}:gpt-reviewer`]: ['review'],
}
/** Commands that start an agent, and those that ask ours. */
export const FORKS = [`${PLUGIN}:ask`, `${PLUGIN}:review`]
export const COMMANDS = ['status', 'result', 'interrupt', 'setup']
export const TOOLS = `mcp__plugin_${PLUGIN}_gpt__`
/** A job, a thread, a branch or a folder: what a command takes. Anything else never becomes a word of a command line. */
export const WORD = /^[\w~/.@:+-]+$/
