/**
 * What became of a turn, and how it is told. Does not own: the turn (turn.ts).
 */
import type { EngineInterface } from 'claude-code'
import { PLUGIN } from './names'

export type Outcome = {
  job: string | null
  status: string
  final_text: string
  usage: Record<string, number> | null
  error: { kind: string; reason: string; message: string; retry_at: number | null } | null
  effective: { model: { value: string } | null }
  thread: string | null
}

type Advice = Record<string, Record<string, string>>

/** The failure as the agent's report: what happened, of which kind, and what to do. */
export function report(outcome: Outcome, advice: Advice): string {
  const { kind, reason, message, retry_at } = outcome.error ?? { ...NO_OUTCOME, message: 'no reason was given' }
  const what = message.includes(`/${PLUGIN}:setup`) ? '' : `\n${advice.reason?.[reason] ?? advice.kind?.[kind] ?? ''}`
  const when = retry_at === null ? '' : ` Not before ${new Date(retry_at * 1000).toISOString().slice(0, 19).replace('T', ' ')} UTC.`
  const job = outcome.job === null ? '' : `\nJob ${outcome.job}: /cc-agents:status ${outcome.job}`
  const ended = outcome.status === 'failed' ? 'failed' : `was ${outcome.status}`
  return `${PLUGIN}: the GPT turn ${ended} (${kind}, ${reason}).\n${message}${what}${when}${job}`
}

const NO_OUTCOME = { kind: 'other', reason: 'cli_not_usable', message: '', retry_at: null }

/** An outcome for a process that ended without one: the launcher found nothing to start, or it was killed. */
export function without(stderr: string, how: string): Outcome {
  const said = stderr.trim().split('\n').slice(-5).join('\n').replaceAll(/^cc-agents: /gm, '')
  const error = { ...NO_OUTCOME, message: said || how }
  return { job: null, status: 'failed', final_text: '', usage: null, error, effective: { model: null }, thread: null }
}

/** Codex's usage in Claude Code's words. It counts in the agent's row; Claude Code puts no price on it. */
export function usageOf(outcome: Outcome, model: string) {
  const used = outcome.usage
  if (used === null) return null
  const cached = used.cached_input_tokens ?? 0
  return {
    model: outcome.effective.model?.value ?? model,
    input_tokens: (used.input_tokens ?? 0) - cached,
    output_tokens: used.output_tokens ?? 0,
    cache_read_input_tokens: cached,
    cache_creation_input_tokens: used.cache_write_input_tokens ?? 0,
  }
}

/** What to do about each kind and reason of failure; empty where the file can't be read. */
export async function adviceOf($: EngineInterface): Promise<Advice> {
  try {
    return JSON.parse(String(await $.fs.read(`${$.plugin.root}/advice.json`)))
  } catch {
    return {}
  }
}
