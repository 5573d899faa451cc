/**
 * One turn of an agent: the process, its events, the agent's thread. Does not own: what is told of it (outcome.ts).
 */
import type { EngineInterface } from 'claude-code'
import { environment, launcher } from './command'
import { PLUGIN, VERBS, WORD } from './names'
import { type Outcome, without } from './outcome'
import { doing, show } from './shown'

export type Agent = { id: string; type: string; cwd: string; name?: string }

/** The thread of each agent's running turn, once Codex has begun it. */
export const running = new Map<string, string>()

const threadFile = (env: Record<string, string>, agent: string): string =>
  `${env.CLAUDE_PLUGIN_DATA}/agents/${agent}.json`

/** The agent's thread, if a turn of it got as far as that. */
async function threadOf($: EngineInterface, env: Record<string, string>, agent: string): Promise<string | undefined> {
  try {
    return JSON.parse(String(await $.fs.read(threadFile(env, agent)))).thread
  } catch {
    return undefined // its first turn
  }
}

function words(type: string, task: string, thread: string | undefined): string[] {
  const verb = [...VERBS[type]!, '--events', '--attended']
  if (type === `${PLUGIN}:gpt-reviewer`) return reviewing(verb, task.trim())
  return thread === undefined ? verb : [...verb, '--resume', thread]
}

function reviewing(verb: string[], base: string): string[] {
  return base === '' || base === 'uncommitted' || !WORD.test(base) ? verb : [...verb, '--base', base]
}

/** Whole lines of a stream whose pieces end anywhere. */
class Lines {
  #rest: string[] = []
  add(piece: string): string[] {
    const parts = piece.split('\n')
    if (parts.length === 1) {
      this.#rest.push(piece)
      return []
    }
    const lines = [this.#rest.join('') + parts[0]!, ...parts.slice(1, -1)]
    this.#rest = [parts.at(-1)!]
    return lines
  }
}

/** One turn: progress as it comes, then what became of it. A failure is an outcome too; only a stop is thrown on. */
export async function* turn($: EngineInterface, me: Agent, task: string, options: Record<string, unknown>) {
  let outcome: Outcome | undefined
  let stderr = ''
  try {
    const env = await environment($, options)
    const argv = [...launcher($.plugin.root), ...words(me.type, task, await threadOf($, env, me.id))]
    const child = $.process.spawn({ argv, cwd: me.cwd, env, input: task })
    const lines = new Lines()
    for await (const piece of child) {
      if (piece.stream === 'stderr') {
        stderr = (stderr + piece.text).slice(-4000)
        show($, me.id, piece.text)
        yield piece.text
        continue
      }
      for (const line of lines.add(piece.text)) {
        const event = JSON.parse(line)
        if (event.event === 'begun') {
          running.set(me.id, event.thread)
          await $.fs.write(threadFile(env, me.id), JSON.stringify({ thread: event.thread, type: me.type }))
        } else if (event.event === 'outcome') outcome = event.outcome
        else if (event.event === 'alive') yield '.'
      }
    }
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    if (message.endsWith(' aborted')) throw error // by Esc or `x`: Claude Code says so itself
    stderr += `\n${message}`
  } finally {
    running.delete(me.id)
    doing.delete(me.id)
  }
  return outcome ?? without(stderr, 'the cc-agents command ended without a word')
}
