// A host as MCP Apps describes it: a frame without an origin, under a policy that loads nothing.
async ({html, answer, sent, theme}) => {
  window.received = [];
  const frame = document.createElement("iframe");
  frame.sandbox = "allow-scripts";
  frame.style = "width: 100%; height: 900px; border: 0";
  const policy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src 'none'";
  const meta = `<meta http-equiv="Content-Security-Policy" content="${policy}">`;
  frame.srcdoc = html.replace("<head>", "<head>" + meta);
  const send = (message) => frame.contentWindow.postMessage({jsonrpc: "2.0", ...message}, "*");
  addEventListener("message", async ({data}) => {
    window.received.push(data);
    if (data.method === "ui/initialize") send({id: data.id, result: {protocolVersion: "2026-01-26", hostContext: {theme}}});
    else if (data.method === "ui/notifications/initialized") {
      send({method: "ui/notifications/tool-input", params: {arguments: sent}});
      send({method: "ui/notifications/tool-result", params: answer});
    } else if (data.method === "resources/read") send({id: data.id, result: await window.readResource(data.params.uri)});
    else if (data.id !== undefined) send({id: data.id, result: {}});
  });
  document.body.append(frame);
}
