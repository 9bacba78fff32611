// `count`, `sum` and `time_series`: numbers as bars, and the table that they were drawn from.
function draw(answer, sent) {
  const buckets = answer.buckets ?? [{ key: answer.resource, value: answer.value }];
  const labels = buckets.map((bucket) => [bucket.label ?? bucket.key ?? "none", bucket.group].filter((part) => part !== undefined && part !== null).join(", "));
  const values = buckets.map((bucket) => Number(bucket.value));
  const most = Math.max(1, ...values);
  const shown = buckets.slice(0, 40);
  const drawing = svg("svg", { height: shown.length * 38 + 4, role: "img", "aria-label": "One bar for each row of the table below" });
  shown.forEach((_, index) => {
    const width = (Math.max(0, values[index]) / most) * 80;
    drawing.append(
      svg("text", { x: 0, y: index * 38 + 13 }, labels[index].slice(0, 60)),
      svg("rect", { x: 0, y: index * 38 + 18, width: `${Math.max(0.3, width)}%`, height: 16, fill: "var(--strong)" }),
      svg("text", { x: `${width}%`, dx: 6, y: index * 38 + 31 }, values[index].toLocaleString("en")),
    );
  });
  const grouping = answer.interval ? `by ${answer.interval}` : sent.group_by ? `by ${sent.group_by.replaceAll("_", " ")}` : "";
  const notes = [
    answer.unit ? `In ${answer.unit}.` : "",
    answer.loaded_up_to ? `Loaded up to ${answer.loaded_up_to}.` : "",
    answer.truncated ? `${answer.total_buckets - buckets.length} more are not shown.` : "",
    answer.note ?? "",
  ].filter(Boolean);
  return {
    content: [
      el("h1", {}, `${answer.resource} ${grouping}`),
      ...(buckets.length > 1 ? [drawing] : []),
      table(["What", "How many"], buckets.map((bucket, index) => [labels[index], typeof bucket.value === "number" ? bucket.value : String(bucket.value)])),
      el("p", { class: "soft" }, notes.join(" ")),
    ],
    path: `/records/${encodeURIComponent(answer.resource)}`,
    question: `What explains these numbers of ${answer.resource} ${grouping}?`,
  };
}
