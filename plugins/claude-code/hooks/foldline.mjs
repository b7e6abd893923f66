// Hands a compaction to `foldline hook claude session.compact`, which does all the work. Whatever goes wrong
// there, Claude Code compacts by itself, and a line in the transcript says so.

const PATIENCE = 120_000 // milliseconds; a fold takes one or two seconds, a summary by a model a minute

/** @type {import('claude-code').Register} */
export const register = on => {
  on('session.compact', async ($, e, next) => {
    if (e.trigger === 'precompute') {
      return { skip: 'Foldline needs no time ahead' }
    }
    let why
    try {
      const { context } = await $.session.usage()
      const event = {
        trigger: e.trigger,
        agent: e.agentId,
        instructions: e.instructions,
        session: await $.session.id(),
        model: await $.session.model(),
        window: context.window,
        messages: e.messages,
      }
      const ran = await $.process.run(['foldline', 'hook', 'claude', 'session.compact'], {
        stdin: JSON.stringify(event),
        timeoutMs: PATIENCE,
      })
      const answer = JSON.parse(ran.stdout)
      if (answer.skip) {
        return { skip: answer.skip }
      }
      if (answer.messages) {
        $.ui.log(answer.told)
        // a number is a message kept as it is, by its place
        return { messages: answer.messages.map(one => (typeof one === 'number' ? e.messages[one] : one)) }
      }
      why = answer.why
    } catch (error) {
      why = error.message
    }
    $.ui.log(`could not fold (${why}): Claude Code compacts by itself`)
    return next(e)
  })
}
