"""A small coding agent on a session: a loop, its tools and their permissions.

    from foldline.agent.loop import Agent

    async with foldline.open("sqlite:///work.db", "today", system=SYSTEM) as session:
        agent = Agent(session, provider, toolbox, emit=print)
        await agent.run("Mend the failing test.")

The loop (`loop.py`, `replies.py`) needs the public API alone, as a loop of your own would. Its host, tools
and commands also use parts of Foldline that are not public.
"""
