/**
 * What is asked: the exact words of a task or a message, out of what Claude Code writes around them.
 */
import type { EngineInterface } from 'claude-code'

/** Messages on their way, by whom they were sent to, so that Codex gets them without what is written around them. */
export const messages = new Map<string, string[]>()
/** Arguments of the forking commands, in the order of asking. */
export const asked: string[] = []

/** How Claude Code begins what it gives an agent that a skill has started. */
const SKILL = /^Base directory for this skill: [^\n]*\n\n/
/** What it writes around the words that a person says in an agent's view. */
const SAID = /^The user sent a new message while you were working:\n([^]*)\n\nThis is how Claude Code surfaces messages [^\n]*$/
/** How it begins the one message that tells the main conversation of an agent's end. */
const ENDED = /^<task-notification>\n<task-id>(\w+)<\/task-id>/

/** The agent whose end is all that this message is about. */
export function endedAgent(text: string): string | undefined {
  return text.indexOf('<task-notification>', 1) < 0 ? ENDED.exec(text)?.[1] : undefined
}

/** The prompt of a turn, exactly as it was said, out of the text that Claude Code gives the agent. */
export function exactly(names: readonly string[], text: string): string {
  for (const name of names) {
    const sent = messages.get(name)
    messages.delete(name)
    if (sent !== undefined && sent.every(one => text.includes(one))) return sent.join('\n\n')
  }
  const skill = SKILL.exec(text)
  if (skill === null) return SAID.exec(text)?.[1] ?? text
  const body = text.slice(skill[0].length).replace(/\n$/, '')
  const place = asked.indexOf(body)
  return place < 0 ? body : asked.splice(place, 1)[0]!
}

/** What was said to the agent since its last answer, for a step whose turn we did not see begin. */
export async function newest($: EngineInterface, agentId: string): Promise<string> {
  const rows = await $.session.messages({ agentId, as: 'api' })
  if (!Array.isArray(rows)) return ''
  const since = rows.slice(rows.findLastIndex(row => row.role === 'assistant') + 1)
  const texts = since.flatMap(row => (typeof row.content === 'string' ? [row.content] : textsOf(row.content)))
  return texts.filter(text => !text.startsWith('<system-reminder>')).at(-1) ?? ''
}

function textsOf(blocks: readonly unknown[]): string[] {
  return blocks.flatMap(block => {
    const { type, text } = block as { type: string; text?: string }
    return type === 'text' && text !== undefined ? [text] : []
  })
}

/** Did a person start the agent with a command? */
export const isForked = (text: string): boolean => SKILL.test(text)
