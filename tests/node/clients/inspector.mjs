// The Inspector's command line. A shell starts it once for each request; here one process calls
// its entry point as often as the plan asks, which does the same and takes seconds, not minutes.

import { runCli } from "@modelcontextprotocol/inspector/clients/cli/build/index.js";

import { main, textsOf } from "./plan.mjs";

await main(async (url) => {
  const ask = async (method, ...options) => {
    const target = [url, "--transport", "http", "--stored-auth-only", "-q", "--format", "json"];
    const { written, error } = await captured(["node", "cli", ...target, "--method", method, ...options]);
    // A tool's error is written and then thrown; what was never written never reached the reader.
    if (!written) throw error;
    return JSON.parse(written).result;
  };
  return {
    listTools: async () => (await ask("tools/list")).tools.map((tool) => tool.name),
    call: async (name, args) =>
      textsOf(await ask("tools/call", "--tool-name", name, "--tool-args-json", JSON.stringify(args))),
    read: async (uri) => (await ask("resources/read", "--uri", uri)).contents[0].text,
    getPrompt: async (name, args) => {
      const pairs = Object.entries(args).map(([key, value]) => `${key}=${value}`);
      const result = await ask("prompts/get", "--prompt-name", name, "--prompt-args", ...pairs);
      return result.messages[0].content.text;
    },
    close: async () => {},
  };
});

async function captured(argv) {
  const write = process.stdout.write;
  let written = "";
  process.stdout.write = (chunk, encoding, done) => {
    written += chunk;
    (typeof encoding === "function" ? encoding : done)?.();
    return true;
  };
  try {
    await runCli(argv);
    return { written };
  } catch (error) {
    return { written, error };
  } finally {
    process.stdout.write = write;
  }
}
