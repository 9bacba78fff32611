// What every view shares: the handshake with the host, and elements whose text is always text.
const waiting = new Map();
let lastId = 0;
let sentArguments = {};
const post = (message) => parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
const ask = (method, params) => new Promise((resolve, reject) => {
  waiting.set(++lastId, [resolve, reject]);
  post({ id: lastId, method, params });
});
function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}
const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
const row = (cell, ...values) => el("tr", {}, ...values.map((value) => typeof value === "number" ? el(cell, { class: "number" }, value.toLocaleString("en")) : el(cell, {}, value ?? "")));
const heading = (label, value) => el("th", typeof value === "number" ? { class: "number" } : {}, label);
const table = (head, rows) => el("table", {}, el("thead", {}, el("tr", {}, ...head.map((label, index) => heading(label, rows[0]?.[index])))), el("tbody", {}, ...rows.map((values) => row("td", ...values))));
const span = (from, to) => `${from} to ${to ?? "today"}`;
function report() {
  const { scrollWidth: width, scrollHeight: height } = document.documentElement;
  post({ method: "ui/notifications/size-changed", params: { width, height } });
}
function show(answer) {
  const view = document.getElementById("view");
  const drawn = draw(answer, sentArguments);
  view.replaceChildren(...drawn.content);
  const actions = [];
  const add = (label, act) => { const button = el("button", { type: "button" }, label); button.onclick = act; actions.push(button); };
  if (ROOM && drawn.path) add("Open in Reading Room", () => ask("ui/open-link", { url: ROOM + drawn.path }));
  add("Ask about this", () => ask("ui/message", { role: "user", content: [{ type: "text", text: drawn.question }] }));
  document.getElementById("actions").replaceChildren(...actions);
  report();
}
function apply(context) {
  if (context?.theme) document.documentElement.style.colorScheme = context.theme;
  for (const [name, value] of Object.entries(context?.styles?.variables ?? {})) document.documentElement.style.setProperty(name, value);
}
addEventListener("message", (event) => {
  const message = event.data;
  if (event.source !== parent || message?.jsonrpc !== "2.0") return;
  if (message.id !== undefined && !message.method) {
    const [resolve, reject] = waiting.get(message.id) ?? [];
    waiting.delete(message.id);
    if (message.error) reject?.(message.error); else resolve?.(message.result);
  } else if (message.method === "ui/notifications/tool-input") sentArguments = message.params.arguments ?? {};
  else if (message.method === "ui/notifications/host-context-changed") apply(message.params);
  else if (message.method === "ui/notifications/tool-result") {
    const answer = message.params.structuredContent;
    if (answer && !message.params.isError) show(answer);
    else document.getElementById("view").replaceChildren(el("p", {}, message.params.content?.[0]?.text ?? "There is no answer."));
  } else if (message.id !== undefined) post({ id: message.id, result: {} });
});
function start(name) {
  ask("ui/initialize", { protocolVersion: "2026-01-26", appInfo: { name: `readingroom-${name}`, version: "1" }, appCapabilities: { availableDisplayModes: ["inline"] } })
    .then((result) => { apply(result.hostContext); post({ method: "ui/notifications/initialized", params: {} }); });
}
