/**
 * The cc-agents command as a process: its environment, the plugin's commands, a word into a running turn.
 */
import type { EngineInterface } from 'claude-code'
import { PLUGIN, WORD } from './names'

const SETUP_MS = 10 * 60_000 // the longest that $.process.run waits; installing took 20 s
const COMMAND_MS = 5 * 60_000 // `interrupt` waits for the turn's end, minutes at most

/** The environment of our commands: the plugin's folders, and each option that is set. */
export async function environment($: EngineInterface, options: Record<string, unknown>): Promise<Record<string, string>> {
  const env = await $.process.hookEnv()
  for (const [name, value] of Object.entries(options))
    if (value !== undefined && value !== '') env[`CLAUDE_PLUGIN_OPTION_${name.toUpperCase()}`] = String(value)
  return env
}

export const launcher = (root: string): string[] => ['python3', '-I', '-S', `${root}/servers/launcher.py`]

/** What one of the plugin's commands prints, with no model asked. */
export async function told($: EngineInterface, verb: string, args: string, options: Record<string, unknown>): Promise<string> {
  const given = args.split(/\s+/).filter(word => word !== '')
  if (!given.every(word => WORD.test(word) && !word.startsWith('-'))) return `/${PLUGIN}:${verb} takes a job, not: ${args}`
  const argv = [...launcher($.plugin.root), verb === 'setup' ? 'plugin-setup' : verb, ...given]
  const init = { env: await environment($, options), timeoutMs: verb === 'setup' ? SETUP_MS : COMMAND_MS }
  const done = await $.process.run(argv, init)
  const stderr = done.stderr.replaceAll(/^cc-agents: /gm, '') // Claude Code puts the plugin's name before all of it
  const said = [done.stdout, stderr].map(text => text.trimEnd()).filter(text => text !== '').join('\n')
  return said.includes('\n') ? `\n${said}` : said || 'nothing to show' // a table begins on a line of its own
}

/** Says `text` into the agent's running turn; false when Codex did not take it. */
export async function steer($: EngineInterface, thread: string, text: string, options: Record<string, unknown>) {
  const argv = [...launcher($.plugin.root), 'steer', thread, '-']
  const done = await $.process.run(argv, { stdin: text, env: await environment($, options), timeoutMs: COMMAND_MS })
  return done.exitCode === 0
}
