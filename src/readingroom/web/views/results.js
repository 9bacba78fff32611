// `search` at the desk: what was found, and how sure that is.
function draw(answer, sent) {
  const results = answer.results.map((hit) => {
    const dates = hit.in_force ? `, in force ${span(hit.in_force.effective_from ?? hit.in_force.from ?? "", hit.in_force.effective_to ?? hit.in_force.to)}` : "";
    const score = typeof hit.score === "number" ? `, relevance ${hit.score.toFixed(2)}` : "";
    const article = el("article", {}, el("b", {}, hit.title), el("p", { class: "soft" }, `${hit.citation?.citation_string ?? hit.id}${dates}${score}`), el("p", {}, (hit.snippet ?? hit.text ?? "").slice(0, 400)), hit.attribution ? el("small", {}, hit.attribution) : null);
    if (ROOM) {
      const button = el("button", { type: "button" }, "Read it");
      button.onclick = () => ask("ui/open-link", { url: `${ROOM}/read?id=${encodeURIComponent(hit.id)}` });
      article.append(button);
    }
    return article;
  });
  const silent = [...answer.excluded, ...answer.notes].map((note) => `${note.base}: ${note.reason ?? note.message ?? ""}`);
  return {
    content: [
      el("h1", {}, sent.query ?? "Search"),
      el("p", {}, el("b", {}, `Confidence: ${answer.confidence}. `), answer.confidence_reason),
      ...(answer.unread_revisions ?? []).map((unread) => el("p", {}, el("b", {}, `${unread.source}: a revision from ${unread.effective_from} could not be read.`))),
      ...results,
      el("p", { class: "soft" }, `Searched: ${answer.searched.join(", ")}. ${silent.join("; ")}`),
    ],
    path: `/search?${new URLSearchParams({ q: sent.query ?? "" })}`,
    question: "Which of these results answers the question, and what does it say word for word?",
  };
}
