// Reads a plan from standard input, carries it out with one client, and prints a report.

import { text } from "node:stream/consumers";

/** Carry out the plan with the client that `connect` returns for its URL. */
export async function main(connect) {
  const plan = JSON.parse(await text(process.stdin));
  const session = await connect(plan.url);
  const report = {
    tools: await session.listTools(),
    answers: await inOrder(plan.calls, (call) => session.call(...call)),
    resource: await session.read(plan.resource),
    prompt: await session.getPrompt(...plan.prompt),
    completions: session.complete ? await session.complete(...plan.completion) : null,
    errors: await inOrder(plan.errors, (call) => tellError(() => session.call(...call))),
  };
  process.stdout.write(JSON.stringify(report));
  await session.close();
}

/** The texts of a tool's result, one a line. */
export function textsOf(result) {
  return result.content.map((item) => item.text).join("\n");
}

async function inOrder(items, act) {
  const results = [];
  for (const item of items) results.push(await act(item));
  return results;
}

/** What the caller is told, as a result or as an exception. */
async function tellError(call) {
  try {
    return await call();
  } catch (error) {
    return `${error.name}: ${error.message}`;
  }
}
