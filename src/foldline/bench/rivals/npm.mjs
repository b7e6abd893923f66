// The systems of npm. Each input line is a request, each output line its answer.
import { createInterface } from "node:readline";

console.log = console.info = console.error; // lines of standard output are answers

// a token counter for systems that need one
const size = ({ content, tool_calls: calls }) => Math.ceil(JSON.stringify([content, calls]).length / 4);

// ---- Chat Completions as the AI SDK's messages, and back

function prompt(messages) {
  const names = {};
  return messages.map(({ role, content, tool_calls: calls, tool_call_id: id }) => {
    if (role === "system") return { role, content };
    if (role === "tool") {
      const result = { type: "tool-result", toolCallId: id, toolName: names[id] ?? "unknown" };
      return { role, content: [{ ...result, output: { type: "text", value: content } }] };
    }
    const parts = Array.isArray(content) ? [...content] : content ? [{ type: "text", text: content }] : [];
    for (const { id, function: { name, arguments: input } } of calls ?? []) {
      names[id] = name;
      parts.push({ type: "tool-call", toolCallId: id, toolName: name, input: JSON.parse(input) });
    }
    return { role, content: parts };
  });
}

function chat(messages) {
  return messages.flatMap(({ role, content }) => {
    if (role === "system") return [{ role, content }];
    const parts = (type) => content.filter((part) => part.type === type);
    const results = parts("tool-result").map((part) => (
      { role: "tool", tool_call_id: part.toolCallId, content: part.output.value }
    ));
    if (role === "tool") return results;
    const text = parts("text").map((part) => part.text).join("\n");
    const calls = parts("tool-call").map(({ toolCallId, toolName, input }) => (
      { id: toolCallId, type: "function", function: { name: toolName, arguments: JSON.stringify(input) } }
    ));
    return [{ role, content: text, ...(calls.length ? { tool_calls: calls } : {}) }];
  });
}

// Run processors as Mastra does before a request to the model.
async function mastra(processors, messages) {
  let sent = prompt(messages);
  for (const processor of processors) {
    if (!processor.processLLMRequest) throw new Error("needs @mastra/core 1.71, which needs Node.js 22");
    sent = (await processor.processLLMRequest({ prompt: sent, state: {} }))?.prompt ?? sent;
  }
  return chat(sent);
}

// ---- the systems

const systems = {
  async "ai-prune-messages"(messages) {
    const { pruneMessages } = await import("ai");
    return chat(pruneMessages({
      messages: prompt(messages),
      reasoning: "before-last-message",
      toolCalls: "before-last-2-messages",
      emptyMessages: "remove",
    }));
  },
  async "langchain-js-trim"(messages, maxTokens) {
    const { coerceMessageLikeToMessage, trimMessages } = await import("@langchain/core/messages");
    const coerced = messages.map((message, index) => (
      coerceMessageLikeToMessage({ ...message, id: String(index) })
    ));
    const sizes = messages.map(size);
    const tokenCounter = (counted) => counted.reduce((sum, { id }) => sum + sizes[id], 0);
    const options = { maxTokens, tokenCounter, strategy: "last", startOn: "human", includeSystem: true };
    return (await trimMessages(coerced, options)).map(({ id }) => messages[id]);
  },
  async "mastra-token-limiter"(messages, budget) {
    const { TokenLimiterProcessor } = await import("@mastra/core/processors");
    return mastra([new TokenLimiterProcessor(budget)], messages);
  },
  async "mastra-tool-call-filter"(messages, budget) {
    const { TokenLimiterProcessor, ToolCallFilter } = await import("@mastra/core/processors");
    const filter = new ToolCallFilter({ filterAfterToolSteps: 5 });
    return mastra([filter, new TokenLimiterProcessor(budget)], messages);
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { system, budget, messages } = JSON.parse(line);
  const started = process.cpuUsage();
  const answer = {};
  try {
    answer.messages = await systems[system](messages, budget);
  } catch (error) {
    answer.error = String(error);
  }
  const { user, system: kernel } = process.cpuUsage(started);
  process.stdout.write(`${JSON.stringify({ ...answer, seconds: (user + kernel) / 1e6 })}\n`);
}
