/**
 * What a running turn does, for the agent's row and view.
 */
import type { EngineInterface, RenderElement } from 'claude-code'

const SHOWN = 8 // lines of progress in an agent's view

/** What the running turn of each agent has done, newest last. */
export const doing = new Map<string, string[]>()

/** What the agent does now: no warning is that. */
export function now(agent: string): string | undefined {
  return doing.get(agent)?.findLast(line => !line.startsWith('warning: '))
}

/** New status lines into the agent's row and view. */
export function show($: EngineInterface, agent: string, text: string): void {
  const lines = text.trimEnd().split('\n').map(line => line.replace(/^cc-agents: +([\d.]+s )?/, ''))
  doing.set(agent, [...(doing.get(agent) ?? []), ...lines].slice(-SHOWN))
  try {
    $.ui.invalidate('ui.render')
  } catch {
    // a surface that draws nothing: the turn goes on
  }
}

/** All of it as lines above the prompt; nothing where nothing runs. */
export function progress(agent: string | undefined): RenderElement | undefined {
  const lines = doing.get(agent ?? '') ?? []
  if (lines.length === 0) return undefined
  const rows = lines.map((line): RenderElement => {
    return { type: 'Text', props: { dimColor: true, wrap: 'truncate' }, children: [line] }
  })
  return { type: 'Box', props: { flexDirection: 'column' }, children: rows }
}
