// The AI SDK's client: its tools as a model calls them.

import { createMCPClient } from "@ai-sdk/mcp";

import { main, textsOf } from "./plan.mjs";

await main(async (url) => {
  const client = await createMCPClient({ transport: { type: "http", url } });
  let tools;
  return {
    listTools: async () => Object.keys((tools = await client.tools())),
    call: async (name, args) =>
      textsOf(await tools[name].execute(args, { toolCallId: "1", messages: [] })),
    read: async (uri) => (await client.readResource({ uri })).contents[0].text,
    getPrompt: async (name, args) =>
      (await client.getPrompt({ name, arguments: args })).messages[0].content.text,
    complete: async (name, argument, prefix) => {
      const ref = { type: "ref/prompt", name };
      const result = await client.complete({ ref, argument: { name: argument, value: prefix } });
      return result.completion.values;
    },
    close: () => client.close(),
  };
});
