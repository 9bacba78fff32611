// `list_records`: a roll call by party and position, and how many votes it took; else a list of records.
const sides = [["yea", "Yea", "--strong"], ["nay", "Nay", "--against"], ["present", "Present", "--pale"], ["not_voting", "Not voting", "--line"]];
const countSides = (tally) => sides.map(([side]) => tally[side] ?? 0);
const add = (left, right) => left.map((count, index) => count + right[index]);
function drawBars(rows, needed) {
  const most = Math.max(1, rows[0][1].reduce((sum, count) => sum + count, 0));
  const drawing = svg("svg", { height: rows.length * 38 + 4, role: "img", "aria-label": "Each party by how it voted; the same is in the table below" });
  rows.forEach(([label, counts], index) => {
    drawing.append(svg("text", { x: 0, y: index * 38 + 13 }, label));
    let from = 0;
    counts.forEach((count, side) => {
      drawing.append(svg("rect", { x: `${(from / most) * 100}%`, y: index * 38 + 18, width: `${(count / most) * 100}%`, height: 16, fill: `var(${sides[side][2]})` }));
      from += count;
    });
  });
  const place = `${(needed / most) * 100}%`;
  if (needed) drawing.append(svg("line", { x1: place, x2: place, y1: 14, y2: 38, stroke: "currentColor", "stroke-width": 2, "stroke-dasharray": "4 3" }), svg("text", { x: place, y: 11, "text-anchor": "middle" }, `${needed} needed`));
  return drawing;
}
function drawVote(answer) {
  const { vote } = answer;
  const parties = Object.entries(vote.by_party).map(([party, tally]) => [party, countSides(tally)]);
  const rows = [["All", parties.reduce((sum, [, counts]) => add(sum, counts), [0, 0, 0, 0])], ...parties];
  const members = answer.results.map((member) => [member.name, `${member.party ?? ""} ${member.state ?? ""}`, member.position]);
  return [
    el("h1", {}, vote.title),
    el("p", {}, el("b", {}, `${vote.result ?? "No result is stated"}. `), `Yea ${vote.totals.yea ?? 0}, nay ${vote.totals.nay ?? 0}${vote.needed ? `; it took ${vote.needed}` : ""}.`),
    ...(parties.length ? [drawBars(rows, vote.needed), table(["Party", ...sides.map(([, label]) => label)], rows.map(([label, counts]) => [label, ...counts]))] : []),
    ...(members.length ? [el("p", { class: "soft" }, `${members.length} of ${answer.total} members:`), table(["Member", "Of", "Voted"], members)] : []),
  ];
}
function drawList(answer) {
  const rows = answer.results.map((record) => [record.title ?? record.name ?? record.text ?? record.id ?? "", record.published_at ?? record.date ?? record.position ?? "", record.id ?? record.bioguide_id ?? ""].map(String));
  return [
    el("h1", {}, `${answer.id ? `${answer.id}: ` : ""}${(answer.part ?? answer.source).replaceAll("_", " ")}`),
    rows.length ? table(["What", "When or how", "Id"], rows) : el("p", {}, "Nothing was found."),
    answer.has_more ? el("p", { class: "soft" }, "There are more.") : "",
  ];
}
function draw(answer) {
  return {
    content: [...(answer.vote ? drawVote(answer) : drawList(answer)), el("p", { class: "soft" }, answer.note ?? "")],
    path: answer.id ? `/read?${new URLSearchParams({ id: answer.id })}` : `/records/${encodeURIComponent(answer.source.replaceAll("_", "-"))}`,
    question: answer.vote ? "Who voted against their party, and what was decided?" : "Which of these matter most, and why?",
  };
}
