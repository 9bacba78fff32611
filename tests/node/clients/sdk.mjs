// What a program needs of the TypeScript SDK's client, which is the same in its versions 1 and 2.

import { textsOf } from "./plan.mjs";

export function sessionOf(client) {
  return {
    listTools: async () => (await client.listTools()).tools.map((tool) => tool.name),
    call: async (name, args) => textsOf(await client.callTool({ name, arguments: args })),
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
}
