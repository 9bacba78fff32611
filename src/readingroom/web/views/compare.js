// `compare_policy_revisions`: what changed between two revisions, word by word.
const tags = { insert: "ins", delete: "del", equal: "span" };
function draw(answer) {
  const { from_revision: before, to_revision: after, summary } = answer;
  const counts = Object.entries(summary).filter(([, count]) => count).map(([kind, count]) => `${count} ${kind.replaceAll("_", " ")}`);
  const changes = answer.changes.map((change) => {
    const moved = change.from_section_ref && change.to_section_ref && change.from_section_ref !== change.to_section_ref;
    const reference = moved ? `${change.from_section_ref} → ${change.to_section_ref}` : change.section_ref;
    const words = change.diff.map((part) => el(tags[part.op], {}, part.text));
    return el("article", {}, el("b", {}, reference), ` ${change.section_title}`, el("p", { class: "soft" }, change.kind), el("p", {}, ...words));
  });
  const rest = answer.changes_total - answer.changes.length;
  return {
    content: [
      el("h1", {}, `${answer.source}: ${before.version_label} and ${after.version_label}`),
      el("p", { class: "soft" }, `${span(before.effective_from, before.effective_to)}; ${span(after.effective_from, after.effective_to)}`),
      el("p", {}, `Sections: ${counts.join(", ") || "none changed"}.`),
      ...(answer.unread_revisions ?? []).map((unread) => el("p", {}, el("b", {}, `A revision from ${unread.effective_from} could not be read.`))),
      ...changes,
      rest > 0 ? el("p", { class: "soft" }, `${rest} more changes on further pages.`) : null,
    ].filter(Boolean),
    path: `/policies/${encodeURIComponent(answer.source)}/compare?${new URLSearchParams({ from: before.effective_from, to: after.effective_from })}`,
    question: `Which of these changes to ${answer.source} matter most?`,
  };
}
