/**
 * The agents of this plugin, answered by Codex and not by a Claude model. Claude Code runs this file as it is.
 *
 * Owns: which agents are ours, their model requests, messages to them while they run, the plugin's commands.
 * Does not own: a turn (the cc-agents command), or what happens where modules don't load (servers/gpt_mcp.py).
 * Serves spec:cc-agents.claude-code.
 */
import type { EngineInterface, Register, RenderElement } from 'claude-code'

const PLUGIN = 'cc-agents'
/** What each agent's message becomes. The mode is the agent's; only the header of a task says another one. */
const VERBS: Record<string, readonly string[]> = {
  [`${PLUGIN}:gpt`]: ['run', '--mode', 'read-only'],
  [`${PLUGIN}:gpt-writer`]: ['run', '--mode', 'write'],
  [`${PLUGIN}:gpt-reviewer`]: ['review'],
}
const FORKS = [`${PLUGIN}:ask`, `${PLUGIN}:review`]
const TOOLS = `mcp__plugin_${PLUGIN}_gpt__`
const COMMANDS = ['status', 'result', 'interrupt', 'setup']
/** A job, a thread, a branch or a folder: what a command takes. Anything else never becomes a word of a command line. */
const WORD = /^[\w~/.@:+-]+$/
const SETUP_MS = 10 * 60_000 // the longest that $.process.run waits; installing took 20 s
const SHOWN = 8 // lines of progress in an agent's view
const SPINNER_CHARS = 60 // what fits beside the time and the tokens on 110 columns
const COMMAND_MS = 5 * 60_000 // `interrupt` waits for the turn's end, minutes at most

type Outcome = {
  job: string | null
  status: string
  final_text: string
  usage: Record<string, number> | null
  error: { kind: string; reason: string; message: string; retry_at: number | null } | null
  effective: { model: { value: string } | null }
  thread: string | null
}
type Agent = { id: string; type: string; cwd: string; name?: string }

/** Messages on their way, by whom they were sent to, so that Codex gets them without what is written around them. */
const messages = new Map<string, string[]>()
/** What the newest turn of each agent begins with. */
const prompts = new Map<string, string>()
/** Arguments of the forking commands, in the order of asking. */
const asked: string[] = []
/** The thread of each agent's running turn, once Codex has begun it. */
const running = new Map<string, string>()
/** What the running turn of each agent has done, newest last: for its row and its view. */
const doing = new Map<string, string[]>()
/** Agents that a person started with a command: what they report is for that person, not for a model. */
const forks = new Set<string>()
/** The newest report of each of them, until it is shown. */
const reports = new Map<string, string>()
/** What a turn of the main conversation shows in the place of a model's words, by that turn's id. */
const showing = new Map<string, string>()

// --- what is asked ------------------------------------------------------------------------------------------

/** How Claude Code begins what it gives an agent that a skill has started. */
const SKILL = /^Base directory for this skill: [^\n]*\n\n/
/** What it writes around the words that a person says in an agent's view. */
const SAID = /^The user sent a new message while you were working:\n([^]*)\n\nThis is how Claude Code surfaces messages [^\n]*$/
/** How it begins the one message that tells the main conversation of an agent's end. */
const ENDED = /^<task-notification>\n<task-id>(\w+)<\/task-id>/

/** The agent whose end is all that this message is about. */
function endedAgent(text: string): string | undefined {
  return text.indexOf('<task-notification>', 1) < 0 ? ENDED.exec(text)?.[1] : undefined
}

/** The prompt of a turn, exactly as it was said, out of the text that Claude Code gives the agent. */
function exactly(names: readonly string[], text: string): string {
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
async function newest($: EngineInterface, agentId: string): Promise<string> {
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

// --- our process --------------------------------------------------------------------------------------------

/** The environment of our commands: the plugin's folders, and each option that is set. */
async function environment($: EngineInterface, options: Record<string, unknown>): Promise<Record<string, string>> {
  const env = await $.process.hookEnv()
  for (const [name, value] of Object.entries(options))
    if (value !== undefined && value !== '') env[`CLAUDE_PLUGIN_OPTION_${name.toUpperCase()}`] = String(value)
  return env
}

const launcher = (root: string): string[] => ['python3', '-I', '-S', `${root}/servers/launcher.py`]

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

// --- what is told -------------------------------------------------------------------------------------------

/** The failure as the agent's report: what happened, of which kind, and what to do. */
function report(outcome: Outcome, advice: Record<string, Record<string, string>>): string {
  const { kind, reason, message, retry_at } = outcome.error ?? { ...NO_OUTCOME, message: 'no reason was given' }
  const what = message.includes(`/${PLUGIN}:setup`) ? '' : `\n${advice.reason?.[reason] ?? advice.kind?.[kind] ?? ''}`
  const when = retry_at === null ? '' : ` Not before ${new Date(retry_at * 1000).toISOString().slice(0, 19).replace('T', ' ')} UTC.`
  const job = outcome.job === null ? '' : `\nJob ${outcome.job}: /cc-agents:status ${outcome.job}`
  const ended = outcome.status === 'failed' ? 'failed' : `was ${outcome.status}`
  return `${PLUGIN}: the GPT turn ${ended} (${kind}, ${reason}).\n${message}${what}${when}${job}`
}

const NO_OUTCOME = { kind: 'other', reason: 'cli_not_usable', message: '', retry_at: null }

/** An outcome for a process that ended without one: the launcher found nothing to start, or it was killed. */
function without(stderr: string, how: string): Outcome {
  const said = stderr.trim().split('\n').slice(-5).join('\n').replaceAll(/^cc-agents: /gm, '')
  const error = { ...NO_OUTCOME, message: said || how }
  return { job: null, status: 'failed', final_text: '', usage: null, error, effective: { model: null }, thread: null }
}

/** Codex's usage in Claude Code's words. It counts in the agent's row; Claude Code puts no price on it. */
function usageOf(outcome: Outcome, model: string) {
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

async function ours($: EngineInterface, agentId: string | undefined): Promise<Agent | undefined> {
  if (agentId === undefined) return undefined
  const found = (await $.agent.list()).find(agent => agent.id === agentId)
  return found !== undefined && Object.hasOwn(VERBS, found.type) ? found : undefined
}

/** One turn: progress as it comes, then what became of it. A failure is an outcome too; only a stop is thrown on. */
async function* turn($: EngineInterface, me: Agent, task: string, options: Record<string, unknown>) {
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

/** What the agent does now: no warning is that. */
function now(agent: string): string | undefined {
  return doing.get(agent)?.findLast(line => !line.startsWith('warning: '))
}

/** New status lines into the agent's row and view. */
function show($: EngineInterface, agent: string, text: string): void {
  const lines = text.trimEnd().split('\n').map(line => line.replace(/^cc-agents: +([\d.]+s )?/, ''))
  doing.set(agent, [...(doing.get(agent) ?? []), ...lines].slice(-SHOWN))
  try {
    $.ui.invalidate('ui.render')
  } catch {
    // a surface that draws nothing: the turn goes on
  }
}

async function adviceOf($: EngineInterface): Promise<Record<string, Record<string, string>>> {
  try {
    return JSON.parse(String(await $.fs.read(`${$.plugin.root}/advice.json`)))
  } catch {
    return {}
  }
}

// --- commands and messages ----------------------------------------------------------------------------------

/** What one of the plugin's commands prints, with no model asked. */
async function told($: EngineInterface, verb: string, args: string, options: Record<string, unknown>): Promise<string> {
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
async function steer($: EngineInterface, thread: string, text: string, options: Record<string, unknown>) {
  const argv = [...launcher($.plugin.root), 'steer', thread, '-']
  const done = await $.process.run(argv, { stdin: text, env: await environment($, options), timeoutMs: COMMAND_MS })
  return done.exitCode === 0
}

export const register: Register = (on, options) => {
  on('turn.start', async ($, e, next) => {
    const me = await ours($, e.agentId)
    if (me !== undefined) {
      prompts.set(me.id, exactly([me.id, me.name ?? me.id], e.text))
      if (SKILL.test(e.text)) forks.add(me.id)
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
    const lines = doing.get(view?.agentId ?? '') ?? []
    if (lines.length === 0) return next(e)
    const rows = lines.map((line): RenderElement => {
      return { type: 'Text', props: { dimColor: true, wrap: 'truncate' }, children: [line] }
    })
    return { type: 'Box', props: { flexDirection: 'column' }, children: rows }
  })

  // The tools of our server are for our agents where no module loads. Here no model has to read of them.
  on('tool.offer', ($, e, next) => {
    const isOurs = e.agentId !== undefined || e.subagentType !== undefined
    return e.tool.startsWith(TOOLS) && !isOurs ? { isOffered: false } : next(e)
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
