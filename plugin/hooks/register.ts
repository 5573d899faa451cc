/**
 * The agents of this plugin, answered by Codex and not by a Claude model. Claude Code runs these files as they are.
 *
 * Owns: which agents are ours, their model requests, messages to them while they run, the plugin's commands.
 * Does not own: a turn (turn.ts, the cc-agents command), or what happens where modules don't load (servers/gpt_mcp.py).
 * Serves spec:cc-agents.claude-code.
 */
import type { EngineInterface, Register } from 'claude-code'
import { asked, endedAgent, exactly, isForked, messages, newest } from './asked'
import { steer, told } from './command'
import { COMMANDS, FORKS, PLUGIN, TOOLS, VERBS } from './names'
import { adviceOf, report, usageOf, without } from './outcome'
import { now, progress } from './shown'
import { type Agent, running, turn } from './turn'

const SPINNER_CHARS = 60 // what fits beside the time and the tokens on 110 columns

/** What the newest turn of each agent begins with. */
const prompts = new Map<string, string>()
/** Agents that a person started with a command: what they report is for that person, not for a model. */
const forks = new Set<string>()
/** The newest report of each of them, until it is shown. */
const reports = new Map<string, string>()
/** What a turn of the main conversation shows in the place of a model's words, by that turn's id. */
const showing = new Map<string, string>()

async function ours($: EngineInterface, agentId: string | undefined): Promise<Agent | undefined> {
  if (agentId === undefined) return undefined
  const found = (await $.agent.list()).find(agent => agent.id === agentId)
  return found !== undefined && Object.hasOwn(VERBS, found.type) ? found : undefined
}

export const register: Register = (on, options) => {
  on('turn.start', async ($, e, next) => {
    const me = await ours($, e.agentId)
    if (me !== undefined) {
      const names = [me.id, me.name ?? me.id]
      if (isForked(e.text)) forks.add(me.id)
      else if (names.some(name => messages.has(name))) forks.delete(me.id) // Claude has asked, and waits for it
      prompts.set(me.id, exactly(names, e.text))
    } else if (e.agentId === undefined) {
      const ended = endedAgent(e.text) ?? ''
      const report = reports.get(ended)
      if (report !== undefined) showing.set(e.turnId, report)
      reports.delete(ended)
    }
    return next(e)
  })

  // A model request of our agent never leaves. Progress is thinking; the answer is one text, exactly Codex's.
  // Nor does one that would only tell a person of the report of an agent that they have started by a command.
  on('turn.step', async function* ($, e, next) {
    const shown = e.agentId === undefined ? showing.get(e.turnId) : undefined
    if (shown !== undefined) {
      showing.delete(e.turnId)
      yield { kind: 'text', index: 0, text: shown }
      yield { kind: 'stop', stopReason: 'end_turn', usage: null }
      return { turnId: e.turnId, index: e.index, answer: shown, toolUses: [], stopReason: 'end_turn', usage: null }
    }
    const me = await ours($, e.agentId)
    if (me === undefined) return yield* next(e)
    const begun = e.index === 0 ? prompts.get(me.id) : undefined
    prompts.delete(me.id)
    const task = begun || (await newest($, me.id))
    const steps = turn($, me, task, options)
    let step = await steps.next()
    try {
      for (; step.done !== true; step = await steps.next()) yield { kind: 'thinking', index: 0, text: step.value }
    } finally {
      if (step.done !== true) await steps.return(without('', 'stopped'))
    }
    const outcome = step.value
    const done = outcome.status === 'completed'
    const answer = done ? outcome.final_text : report(outcome, await adviceOf($))
    const usage = usageOf(outcome, e.model)
    if (forks.has(me.id)) reports.set(me.id, done ? `${me.type} says:\n\n${answer}` : answer)
    if (answer !== '') yield { kind: 'text', index: 1, text: answer }
    yield { kind: 'stop', stopReason: 'end_turn', usage }
    return { turnId: e.turnId, index: e.index, answer, toolUses: [], stopReason: 'end_turn', usage }
  })

  // A message to an agent at work steers its turn; any other waits for the agent's next turn, which follows up.
  on('tool.call', { tool: 'SendMessage' }, async ($, e, next) => {
    const { to, message } = e as unknown as { to?: string; message?: unknown }
    if (to === undefined || typeof message !== 'string') return next(e)
    const agent = (await $.agent.list()).find(one => one.id === to || one.name === to)
    const thread = running.get(agent?.id ?? to)
    if (thread !== undefined && (await steer($, thread, message, options))) {
      const said = `The running turn of ${to} has taken the message. Its report will come as before.`
      return { result: { success: true, message: said } }
    }
    messages.set(to, [...(messages.get(to) ?? []), message]) // whoever it is: an agent that has ended is in no list
    return next(e)
  }).catch(($, e, next) => next(e))

  // The agent's row says what its turn does, in the place of the words that it was started with.
  on('ui.render', { component: 'AgentRow' }, ($, e, next) => {
    const label = now(e.props.id)
    return label === undefined ? next(e) : next({ ...e, props: { ...e.props, label } })
  })

  // So does the agent's view: what it does now by the spinner, and what it has done above the prompt.
  on('ui.render', { component: 'Spinner' }, ($, e, next) => {
    const message = now(e.requestId)?.slice(0, SPINNER_CHARS)
    return message === undefined ? next(e) : next({ ...e, props: { ...e.props, message } })
  })
  on('ui.render', { component: 'AbovePrompt' }, ($, e, next) => {
    const view = (e.props as { view?: { agentId?: string } }).view
    return progress(view?.agentId) ?? next(e)
  })

  // The tools of our server are for our agents where no module loads. Here no model has to read of them.
  on('tool.offer', ($, e, next) => {
    const toAnAgent = e.agentId !== undefined || e.subagentType !== undefined
    return e.tool.startsWith(TOOLS) && !toAnAgent ? { isOffered: false } : next(e)
  })

  on('command.run', async ($, e, next) => {
    if (FORKS.includes(e.command)) asked.push(e.args)
    const verb = e.command.startsWith(`${PLUGIN}:`) ? e.command.slice(PLUGIN.length + 1) : ''
    if (!COMMANDS.includes(verb)) return next(e)
    try {
      return { text: await told($, verb, e.args, options) }
    } catch (error) {
      return { text: `/${e.command} could not be run: ${error instanceof Error ? error.message : String(error)}` }
    }
  }).catch(($, e, next) => next(e))
}
