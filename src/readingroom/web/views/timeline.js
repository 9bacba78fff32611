// `list_policy_revisions` and `policy_snapshot`: which revision is in force when.
const days = (day) => Date.parse(day) / 864e5;
function draw(answer) {
  const today = new Date().toISOString().slice(0, 10);
  const isSnapshot = "policies" in answer;
  const bars = isSnapshot
    ? answer.policies.map((policy) => ({ label: policy.title, ...policy.revision, reason: policy.reason }))
    : [...answer.revisions].reverse().map((revision) => ({ label: revision.version_label, ...revision }));
  const dated = bars.filter((bar) => bar.effective_from);
  const line = isSnapshot ? answer.date : today;
  const first = Math.min(days(line), ...dated.map((bar) => days(bar.effective_from))) - 100;
  const last = Math.max(days(line), days(today), ...dated.map((bar) => days(bar.effective_to ?? bar.effective_from))) + 100;
  const place = (day) => ((days(day) - first) / (last - first)) * 100;
  const height = bars.length * 40 + 14;
  const drawing = svg("svg", { height, role: "img", "aria-label": "When each revision is in force; the same is in the table below" });
  bars.forEach((bar, index) => {
    const y = index * 40;
    drawing.append(svg("text", { x: 4, y: y + 12 }, `${bar.label}${bar.effective_from ? `, ${span(bar.effective_from, bar.effective_to)}` : ""}`));
    if (!bar.effective_from) return;
    const [from, to] = [place(bar.effective_from), bar.effective_to ? place(bar.effective_to) : 100];
    drawing.append(svg("rect", { x: `${from}%`, y: y + 17, width: `${Math.max(0.3, to - from)}%`, height: 16, rx: 3, fill: bar.effective_to ? "var(--pale)" : "var(--strong)" }));
  });
  drawing.append(svg("line", { x1: `${place(line)}%`, x2: `${place(line)}%`, y1: 0, y2: height, stroke: "currentColor", "stroke-dasharray": "4 3" }), svg("text", { x: `${place(line)}%`, y: height - 2, "text-anchor": place(line) > 50 ? "end" : "start" }, line));
  const title = isSnapshot ? `In force on ${answer.date}: ${answer.in_force_count} of ${answer.policy_count} policies` : `${answer.source}: ${answer.revision_count} revisions`;
  const rows = bars.map((bar) => [bar.label, bar.revision_id ?? "", bar.effective_from ? span(bar.effective_from, bar.effective_to) : (bar.reason ?? bar.status ?? "none").replaceAll("_", " ")]);
  return {
    content: [el("h1", {}, title), drawing, table(["What", "Revision", "In force"], rows)],
    path: isSnapshot ? `/policies?date=${answer.date}` : `/policies/${encodeURIComponent(answer.source)}`,
    question: isSnapshot ? `Which of these policies of ${answer.date} matters most here, and why?` : `What changed between the last two revisions of ${answer.source}?`,
  };
}
